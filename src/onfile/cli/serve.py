"""`onfile serve`: the pages and the routes on this machine, behind a token."""

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from .assistants import SECONDS_A_WORD, ModelName, can_run_turns, model_named
from .failures import Failure
from .loop import finish
from .options import DATABASE_VARIABLE, Database, Tenant, explained
from .output import note

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from ..console.conversations import Conversations
    from ..memory import Memory
    from ..records import Actor
    from ..scopes import ScopeResolver
    from ..stores import SqlMemoryProvider

HOST, PORT = "127.0.0.1", 8377
_NEEDED = ("fastapi", "uvicorn", "jinja2", "python_multipart")
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answering:
    """Who answers in the chat."""

    model: "Model | None"
    demo: bool


def add_to(application: typer.Typer) -> None:
    """Add the commands of this module."""
    application.command("serve", help=explained(serve), rich_help_panel="What a model sees")(serve)


def serve(
    *,
    demo: Annotated[
        bool,
        typer.Option(
            "--demo", help="Show an invented freight company, in a database of its own that ends with the server."
        ),
    ] = False,
    actor: Annotated[
        list[str] | None,
        typer.Option("--actor", metavar="ID", help="A person to offer in the pages' list; repeat it for several."),
    ] = None,
    tenant: Tenant = None,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="The address to listen on.")] = HOST,
    port: Annotated[
        int, typer.Option("--port", metavar="PORT", min=0, max=65535, help="The port; 0 takes a free one.")
    ] = PORT,
    model: ModelName = None,
    browse: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    db: Database = "",
) -> None:
    """Serve the pages on this machine: what is on file about a person, what a turn of theirs reads, and a chat.

    It prints one address with a token in it; without the token nothing is shown. Ctrl-C ends it. Without --model a
    script answers in the chat, and says so.

    Example: [bold]onfile serve --demo[/]
    """
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        msg = "the server needs a few packages more: pip install 'onfile[server]'"
        raise Failure(msg)
    if demo and db and db != os.environ.get(DATABASE_VARIABLE):
        msg = "--demo keeps its facts in a database of its own; leave --db out, or leave --demo out"
        raise Failure(msg)
    answering = model_named(model)
    import signal
    from tempfile import TemporaryDirectory

    free = _free_port(host, port)
    signal.signal(signal.SIGTERM, _end)
    with ExitStack() as stack:
        if demo:
            folder = stack.enter_context(TemporaryDirectory(prefix="onfile-demo-"))
            db = str(Path(folder) / "demo.db")
            note("The demo's facts are invented and its database is temporary: it is deleted when the server ends.")
        actors = finish(_ready(db, demo=demo, actors=actor or [], tenant=tenant))
        if host not in _LOOPBACK:
            note("Whoever can reach this machine and has the address below can read and delete what is on file.")
        _run(db, actors, _Answering(model=answering, demo=demo), host=host, port=free, browse=browse)


def _end(signum: int, frame: object) -> NoReturn:  # noqa: ARG001  # the signature of a signal handler
    # As if Ctrl-C had been pressed, so that the temporary database is deleted.
    raise KeyboardInterrupt


def _free_port(host: str, port: int) -> int:
    """Answer the port to listen on, or say plainly that it cannot be had."""
    import socket

    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            return int(probe.getsockname()[1])
    except OSError as error:
        msg = f"cannot listen on {host} port {port} ({error.strerror}); choose another with --host or --port 0"
        raise Failure(msg) from None


async def _ready(db: str, *, demo: bool, actors: list[str], tenant: str | None) -> "list[Actor]":
    """Set the database up before the server starts, so that what is wrong is told in one sentence."""
    from ..records import Actor
    from ..scopes import check_actor
    from .database import opened

    named = [Actor(id=name, tenant_ref=tenant) for name in actors]
    for one in named:
        check_actor(one)
    async with opened(db, make=True) as provider:
        if can_run_turns():
            from ..runs.sql import SqlJournal

            await SqlJournal(provider.engine).setup()
        if demo:
            from ..demo import load_demo

            return [*named, *await load_demo(provider)]
    return named


def _run(db: str, actors: "list[Actor]", answering: "_Answering", *, host: str, port: int, browse: bool) -> None:
    import secrets

    from ..console.app import create_app, run_server
    from ..demo import demo_scopes
    from ..memory import Memory
    from ..scopes import default_scopes
    from ..stores import SqlMemoryProvider
    from .database import place_of

    # A second provider: connections belong to the event loop that opened them, and the server has its own.
    provider = SqlMemoryProvider.from_url(place_of(db).url)
    resolver: ScopeResolver = demo_scopes if answering.demo else default_scopes
    memory = Memory(provider, scopes=resolver)
    token = secrets.token_urlsafe(24)
    title = "onfile demo" if answering.demo else "onfile"
    chat = _chat(memory, provider, answering) if can_run_turns() else None
    app = create_app(memory, token=token, actors=actors, title=title, chat=chat)
    until_then = app.router.lifespan_context

    @asynccontextmanager
    async def closing(app: Any) -> AsyncGenerator[None]:
        async with until_then(app):
            yield
        await provider.aclose()

    app.router.lifespan_context = closing
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{port}/?token={token}"
    sys.stdout.write(f"{address}\n")
    sys.stdout.flush()
    if browse:
        import threading
        import webbrowser

        opening = threading.Timer(1, webbrowser.open, [address])
        opening.daemon = True
        opening.start()
    run_server(app, host=host, port=port)


def _chat(memory: "Memory", provider: "SqlMemoryProvider", answering: "_Answering") -> "Conversations":
    from ..console.conversations import Conversations
    from ..demo.assistant import SCRIPTED, demo_assistant

    assistant = demo_assistant(memory, model=answering.model, books=answering.demo, seconds_a_word=SECONDS_A_WORD)
    return Conversations(assistant, provider.engine, notice="" if answering.model is not None else SCRIPTED)
