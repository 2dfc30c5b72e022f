"""`onfile chat`: a conversation in the terminal that remembers, and that a killed process leaves to the next."""

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .assistants import SECONDS_A_WORD, ModelName, model_named, need_turns
from .embedders import EmbedderName, embedder_named
from .failures import Failure
from .options import ActorId, Database, Tenant, explained
from .runs import load_assistant

if TYPE_CHECKING:
    from ..console.conversations import Conversations
    from ..recall import Embedder
    from ..runs.assistant import Assistant


def add_to(application: typer.Typer) -> None:
    """Add the commands of this module."""
    application.command("chat", help=explained(chat), rich_help_panel="What a model sees")(chat)


def chat(
    *,
    actor: ActorId,
    tenant: Tenant = None,
    thread: Annotated[
        str | None,
        typer.Option(
            "--thread",
            metavar="ID",
            help="Go on with this conversation, its unfinished turn first. Without it a new one is begun.",
        ),
    ] = None,
    model: ModelName = None,
    assistant: Annotated[
        str | None,
        typer.Option(
            "--assistant",
            metavar="MODULE:NAME",
            help="Your own Assistant answers, with its tools. Example: --assistant shop.agent:assistant",
        ),
    ] = None,
    embedder: EmbedderName = None,
    db: Database = "",
) -> None:
    """Talk to an assistant that reads what is on file about a person, and remembers what they tell it to.

    Facts outlive the conversation: what one thread had it remember answers in the next. Every step is kept in the
    database as it happens, so a turn that was killed half-way is finished by the next 'onfile chat' on its thread.

    The assistant's words go to standard output and everything about them to standard error; messages may also come
    from a file, one a line. /help lists what you can type besides messages, Ctrl-D ends it.

    Example: [bold]onfile chat --actor ana --tenant acme --model openai:gpt-5[/]
    """
    need_turns()
    import logging

    from ..records import Actor
    from ..scopes import check_actor
    from .talking import Talk

    if assistant is not None and (model is not None or embedder is not None):
        msg = "an assistant of your own brings its model and its memory; leave --model and --embedder out"
        raise Failure(msg)
    person = Actor(id=actor, tenant_ref=tenant)
    check_actor(person)
    own = load_assistant(assistant) if assistant is not None else None
    answering, vectors = model_named(model), embedder_named(embedder)
    logging.lastResort = None  # a driver's traceback is told in a sentence
    # One loop, which stands still while the person types: Ctrl-C then ends the typing and no turn.
    with asyncio.Runner() as loop:
        opening = AsyncExitStack()
        try:
            conversations = loop.run(_conversations(opening, db, own, answering, vectors))
            Talk(conversations, loop, actor=person, thread=thread).go_on()
        finally:
            loop.run(opening.aclose())


async def _conversations(
    opening: AsyncExitStack, db: str, own: "Assistant | None", model: Any, embedder: "Embedder | None"
) -> "Conversations":
    from ..console.conversations import Conversations
    from ..demo.assistant import SCRIPTED, demo_assistant
    from ..memory import Memory
    from .database import opened
    from .workers import engine_of

    provider = await opening.enter_async_context(opened(db, make=True, embedder=embedder))
    if own is None:
        answering = demo_assistant(Memory(provider), model=model, seconds_a_word=_pace())
        conversations = Conversations(answering, provider.engine, notice="" if model is not None else SCRIPTED)
    else:
        # Closed with the conversation: a connection that stays open keeps the process from ending.
        close: Any = getattr(own.memory.provider, "aclose", None) if own.memory is not None else None
        if close is not None:
            opening.push_async_callback(close)
        conversations = Conversations(own, engine_of(own, provider.engine))
    await conversations.setup()
    return conversations


def _pace() -> float:
    import sys

    return SECONDS_A_WORD if sys.stdout.isatty() else 0.0
