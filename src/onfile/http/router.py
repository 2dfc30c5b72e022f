"""The routes by which a person reads what is on file about them and deletes what is theirs."""

# No `from __future__ import annotations` here: FastAPI could not resolve `Annotated[Actor, Depends(actor)]`
# written as text inside a function, and would take the actor from the query string.

import logging
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query
from pydantic import BaseModel
from starlette.convertors import Convertor, register_url_convertor
from starlette.responses import JSONResponse, Response

from ..errors import OnfileError
from ..memory import Memory
from ..records import Actor
from ..scopes import ScopeContext
from ..wire.entries import WireEntry, entries_json
from .problems import NO_STORE, documented, problem

_log = logging.getLogger("onfile.http")

NOT_SIGNED_IN = "Sign in to see what is on file about you."
NOT_ON_FILE = "No such fact is on file about you."
NOT_NOW = "What is on file could not be reached; nothing was changed."


class _AnyText(Convertor[str]):
    """A path's rest as it is: slashes, line breaks and nothing at all included.

    Starlette's own `path` stops at a line break, and would read `mem_1%0A` as `mem_1`.
    """

    regex = r"(?s:.*)\Z"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("onfile_any_text", _AnyText())


class Forgotten(BaseModel):
    """The fact is deleted."""

    forgotten: bool = True


def memory_router(memory: Memory | None, *, actor: Callable[..., Any]) -> APIRouter:
    """Build the routes `GET /agent/memories` and `DELETE /agent/memories/{id}` for your application.

    Args:
        memory: What to read from; None for an application without memory, where nothing is on file.
        actor: Your own dependency: a function, class or generator that FastAPI can call, returning
            the `Actor` who is signed in. What it raises reaches your handlers unchanged; None from
            it answers 401. Nothing else in a request says who is calling.

    Returns:
        A router to include, with a prefix of your own if you like.
    """
    router = APIRouter(tags=["memory"])
    # The host's callable itself is the key that `app.dependency_overrides` looks for.
    signed_in = Depends(actor)

    @router.get(
        "/agent/memories",
        summary="Read what is on file about you",
        response_model=list[WireEntry],
        responses=documented(unauthorized="Nobody is signed in."),
    )
    async def read_memories(  # pyright: ignore[reportUnusedFunction]  # the decorator registers it
        calling: Annotated[Any, signed_in], thread_id: _ThreadId = None
    ) -> Response:
        """Answer every fact that applies to you, with the values that each one beat."""
        if calling is None:
            return problem(401, NOT_SIGNED_IN)
        ctx = _context(calling, thread_id)
        if memory is None:
            return Response(b"[]", media_type="application/json", headers=NO_STORE)
        try:
            entries = await memory.read_back(ctx)
        except OnfileError as error:
            return _not_now("read", error)
        return Response(entries_json(entries), media_type="application/json", headers=NO_STORE)

    @router.delete(
        "/agent/memories/{id:onfile_any_text}",
        summary="Delete one fact of your own",
        response_model=Forgotten,
        responses=documented(
            unauthorized="Nobody is signed in.",
            forbidden="The fact applies to others as well, so it is not yours to delete.",
            not_found="No such fact is on file about you.",
        ),
    )
    async def forget_memory(  # pyright: ignore[reportUnusedFunction]  # the decorator registers it
        calling: Annotated[Any, signed_in],
        memory_id: Annotated[str, Path(alias="id", description="The fact's id, as read.")],
        thread_id: _ThreadId = None,
    ) -> Response:
        """Delete a fact held at your own scope; there is no way back."""
        if calling is None:
            return problem(401, NOT_SIGNED_IN)
        ctx = _context(calling, thread_id)
        if memory is None:
            return problem(404, NOT_ON_FILE)
        try:
            outcome = await memory.forget(memory_id, ctx)
        except OnfileError as error:
            return _not_now("forget", error)
        if outcome.status == "forgotten":
            return JSONResponse({"forgotten": True}, headers=NO_STORE)
        if outcome.status == "forbidden":
            return problem(403, outcome.reason or NOT_ON_FILE)
        # One answer for what does not exist and for what this person may not know of.
        return problem(404, NOT_ON_FILE)

    return router


_ThreadId = Annotated[
    str | None,
    Query(alias="threadId", description="The conversation the page was opened from, for your scope resolver."),
]


def _context(calling: object, thread_id: str | None) -> ScopeContext:
    if not isinstance(calling, Actor):
        msg = f"the actor dependency returned {type(calling).__name__}; it must return an onfile.Actor, or None"
        raise TypeError(msg)
    # Never shared: a person reading their own page is alone with it, whoever is in the thread.
    return ScopeContext(actor=calling, thread_id=thread_id or None, shared=False)


def _not_now(act: str, error: OnfileError) -> Response:
    # No traceback: the errors it was raised from are a driver's, whose text is not ours to vouch for.
    _log.error("could not %s: %s: %s", act, type(error).__name__, error)
    return problem(500, NOT_NOW)
