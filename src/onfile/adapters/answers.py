"""What a person's read-back and forgetting come to over HTTP, for frameworks without a router of ours."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from ..blocking import Blocking
from ..errors import OnfileError
from ..records import Actor
from ..scopes import ScopeContext
from ..wire.entries import entries_json

if TYPE_CHECKING:
    from ..memory import Memory

_log = logging.getLogger("onfile.http")

# The words of `http/`, which needs FastAPI; a test holds that both answer the same bytes.
NOT_SIGNED_IN = "Sign in to see what is on file about you."
NOT_ON_FILE = "No such fact is on file about you."
NOT_NOW = "What is on file could not be reached; nothing was changed."
HEADERS = {"Cache-Control": "no-store"}
"""What is on file about a person belongs in no cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A response, whatever the framework calls one."""

    status: int
    body: bytes
    media_type: str = "application/json"


async def read_answer(memory: Memory | Blocking | None, *, actor: object, thread_id: str | None) -> Answer:
    """Answer every entry on file for the actor; None is nobody, and no memory has nothing on file."""
    if actor is None:
        return _problem(401, NOT_SIGNED_IN)
    ctx = _context(actor, thread_id)
    if memory is None:
        return Answer(status=200, body=b"[]")
    try:
        return Answer(status=200, body=entries_json(await _awaited(memory).read_back(ctx)))
    except OnfileError as error:
        return _not_now("read", error)


async def forget_answer(
    memory: Memory | Blocking | None,
    id: str,  # noqa: A002  # the record's own field name
    *,
    actor: object,
    thread_id: str | None,
) -> Answer:
    """Delete one fact at the actor's own scope, and say what that came to without naming it."""
    if actor is None:
        return _problem(401, NOT_SIGNED_IN)
    ctx = _context(actor, thread_id)
    if memory is None:
        return _problem(404, NOT_ON_FILE)
    try:
        outcome = await _awaited(memory).forget(id, ctx)
    except OnfileError as error:
        return _not_now("forget", error)
    if outcome.status == "forgotten":
        return Answer(status=200, body=b'{"forgotten":true}')
    if outcome.status == "forbidden":
        return _problem(403, outcome.reason or NOT_ON_FILE)
    # One answer for what does not exist and for what this person may not know of.
    return _problem(404, NOT_ON_FILE)


def _awaited(memory: Memory | Blocking) -> Memory:
    return memory.memory if isinstance(memory, Blocking) else memory


def _context(actor: object, thread_id: str | None) -> ScopeContext:
    if not isinstance(actor, Actor):
        msg = f"the actor callable returned {type(actor).__name__}; it must return an onfile.Actor, or None"
        raise TypeError(msg)
    # Never shared: a person reading their own page is alone with it, whoever is in the thread.
    return ScopeContext(actor=actor, thread_id=thread_id or None, shared=False)


def _not_now(act: str, error: OnfileError) -> Answer:
    _log.error("could not %s: %s: %s", act, type(error).__name__, error)
    return _problem(500, NOT_NOW)


def _problem(status: int, detail: str) -> Answer:
    told = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    body = json.dumps(told, ensure_ascii=False).encode("utf-8", "replace")
    return Answer(status=status, body=body, media_type="application/problem+json")
