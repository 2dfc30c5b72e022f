"""What a person's read-back and forgetting come to over HTTP: a status, words and bytes, whatever serves them."""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

from ..errors import OnfileError, ScopeError
from ..provider import ListMemories
from ..records import Actor
from ..scopes import ScopeContext, actor_scope, check_actor
from .entries import entries_json
from .lines import dump_line

if TYPE_CHECKING:
    from ..memory import Memory
    from ..provider import MemoryProvider

_log = logging.getLogger("onfile.http")

NOT_SIGNED_IN = "Sign in to see what is on file about you."
NOBODY = "It could not be told who is signed in, so nothing was read or changed."
NOT_ON_FILE = "No such fact is on file about you."
NOT_NOW = "What is on file could not be reached; nothing was changed."
JSON = "application/json"
PROBLEM_JSON = "application/problem+json"
JSON_LINES = "application/jsonl"
NO_STORE = {"Cache-Control": "no-store"}
"""What is on file about a person belongs in no cache."""
AS_A_FILE = {"Content-Disposition": 'attachment; filename="memories.jsonl"'}
_LINES_AT_ONCE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A response, whatever the framework calls one."""

    status: int
    body: bytes
    media_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=lambda: dict(NO_STORE))


async def read_answer(memory: Memory | None, *, calling: object, thread_id: str | None, asked: object) -> Answer:
    """Answer every entry on file for whom the host named; no memory has nothing on file.

    Args:
        memory: What to read from, or None.
        calling: What the host's function answered.
        thread_id: From the request, for the scope resolver.
        asked: The host's function, to be named in the log where its answer is no actor.
    """
    ctx = person(calling, thread_id, asked=asked)
    if isinstance(ctx, Answer):
        return ctx
    if memory is None:
        return Answer(status=200, body=b"[]")
    try:
        return Answer(status=200, body=entries_json(await memory.read_back(ctx)))
    except OnfileError as error:
        return not_now("read", error)


async def forget_answer(
    memory: Memory | None,
    id: str,  # noqa: A002  # the record's own field name
    *,
    calling: object,
    thread_id: str | None,
    asked: object,
) -> Answer:
    """Delete one fact at the person's own scope, and say what that came to without naming it."""
    ctx = person(calling, thread_id, asked=asked)
    if isinstance(ctx, Answer):
        return ctx
    if memory is None:
        return problem(404, NOT_ON_FILE)
    try:
        outcome = await memory.forget(id, ctx)
    except OnfileError as error:
        return not_now("forget", error)
    if outcome.status == "forgotten":
        return Answer(status=200, body=b'{"forgotten":true}')
    if outcome.status == "forbidden":
        return problem(403, outcome.reason or NOT_ON_FILE)
    # One answer for what does not exist and for what this person may not know of.
    return problem(404, NOT_ON_FILE)


async def forget_all_answer(memory: Memory | None, *, calling: object, asked: object) -> Answer:
    """Delete every fact at the person's own scope and answer how many there were."""
    ctx = person(calling, None, asked=asked)
    if isinstance(ctx, Answer):
        return ctx
    try:
        count = 0 if memory is None else await memory.forget_all(ctx)
    except OnfileError as error:
        return not_now("forget", error)
    return Answer(status=200, body=json.dumps({"forgotten": count}, separators=(",", ":")).encode())


async def export_answer(memory: Memory | None, *, calling: object, asked: object) -> Answer:
    """Answer every fact at the person's own scope as one file, for frameworks that do not await a stream."""
    ctx = person(calling, None, asked=asked)
    if isinstance(ctx, Answer):
        return ctx
    try:
        pieces = [] if memory is None else [piece async for piece in own_pieces(memory.provider, ctx)]
    except OnfileError as error:
        return not_now("export", error)
    return Answer(status=200, body=b"".join(pieces), media_type=JSON_LINES, headers={**NO_STORE, **AS_A_FILE})


async def own_pieces(provider: MemoryProvider, ctx: ScopeContext) -> AsyncGenerator[bytes]:
    """Answer every fact at the actor's own scope as JSON lines, in pieces that are worth sending at once.

    Never more than one of them is held.
    """
    piece: list[str] = []
    async for line in _own_lines(provider, ctx):
        piece.append(f"{line}\n")
        if len(piece) == _LINES_AT_ONCE:
            yield "".join(piece).encode("utf-8", "replace")
            piece.clear()
    if piece:
        yield "".join(piece).encode("utf-8", "replace")


async def _own_lines(provider: MemoryProvider, ctx: ScopeContext) -> AsyncGenerator[str]:
    own = actor_scope(ctx.actor)
    # A store with an administrator's side knows when a key was first on file, and lists what has expired;
    # it reads page by page.
    export: Any = getattr(provider, "export", None)
    if export is not None:
        async for kept in export(scopes=[own]):
            yield dump_line(kept.record, created_at=kept.created_at, expires_at=kept.expires_at)
        return
    records = [one for one in await provider.list(ListMemories(scopes=(own,), ctx=ctx)) if one.scope == own]
    for record in sorted(records, key=lambda one: one.key):
        yield dump_line(record, created_at=record.updated_at)


def person(calling: object, thread_id: str | None, *, asked: object) -> ScopeContext | Answer:
    """Answer the scope context of the person whom the host named, or the refusal to send.

    401 for None, and 500 for anything but an actor with a name, which is the host's mistake and is
    told in the log.
    """
    if calling is None:
        return problem(401, NOT_SIGNED_IN)
    mistake = _mistake(calling)
    if mistake is not None:
        _log.error(
            "the actor dependency %s answered %s; let it return onfile.Actor(id=…) with the id of the person who is "
            "signed in, or None where nobody is",
            _name_of(asked),
            mistake,
        )
        return problem(500, NOBODY)
    # Never shared: a person reading their own page is alone with it, whoever is in the thread.
    return ScopeContext(actor=cast("Actor", calling), thread_id=thread_id or None, shared=False)


def not_now(act: str, error: OnfileError) -> Answer:
    """Answer that the store failed, in words that say nothing of what it was asked."""
    # No traceback: the errors it was raised from are a driver's, whose text is not ours to vouch for.
    _log.error("could not %s: %s: %s", act, type(error).__name__, error)
    return problem(500, NOT_NOW)


def problem(status: int, detail: str) -> Answer:
    """Answer a refusal as problem details (RFC 9457); the same status and detail are the same bytes."""
    told = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    body = json.dumps(told, ensure_ascii=False).encode("utf-8", "replace")
    return Answer(status=status, body=body, media_type=PROBLEM_JSON)


def _mistake(calling: object) -> str | None:
    """Say what is wrong with the host's answer, by its type and never by what is in it."""
    if inspect.iscoroutine(calling):
        calling.close()
        return "a coroutine that nobody awaited"
    if not isinstance(calling, Actor):
        return f"an object of type {type(calling).__name__}"
    try:
        check_actor(calling)
    except ScopeError as error:
        return f"an Actor, but {str(error).partition(';')[0]}"
    return None


def _name_of(asked: object) -> str:
    # Never its repr: that of a partial or of an instance may hold a token.
    named: Any = asked if hasattr(asked, "__qualname__") else type(asked)
    return f"{named.__module__}.{named.__qualname__}"
