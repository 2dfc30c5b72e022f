"""The routes about all of one's own at once: a download of it, and its deletion."""

# No `from __future__ import annotations` here, as in the router.

import logging
from collections.abc import AsyncGenerator, Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request
from pydantic import BaseModel, Field
from starlette.responses import Response, StreamingResponse

from ..errors import OnfileError
from ..memory import Memory
from ..wire.answers import AS_A_FILE, JSON_LINES, NO_STORE, NOT_NOW, NOT_SIGNED_IN, forget_all_answer, own_pieces
from .problems import documented, response
from .signed_in import context_of, not_now

_log = logging.getLogger("onfile.http")

_REFUSALS = documented(unauthorized=NOT_SIGNED_IN, internal_server_error=NOT_NOW)
_LINES: dict[str, Any] = {
    "schema": {"type": "string"},
    "example": '{"scope": "actor:ana", "key": "answer-length", "text": "one sentence, please", "author": "human", '
    '"id": "mem_01KXMRVAW0931T6B7DRGWD81YQ", "updated_at": "2026-07-16T06:12:00Z", '
    '"created_at": "2026-07-16T06:12:00Z", "origin": {"actor_ref": "ana"}}\n',
}


class AllForgotten(BaseModel):
    """All of one's own is deleted."""

    forgotten: int = Field(description="How many facts there were.", examples=[12])


def add_own_routes(router: APIRouter, memory: Memory | None, actor: Callable[..., Any]) -> None:
    """Add `GET /agent/memory-export` and `DELETE /agent/memories`.

    Args:
        router: What they are added to.
        memory: What to read from; None for an application without memory, where nothing is on file.
        actor: The host's own dependency.
    """
    signed_in = Depends(actor)

    @router.get(
        "/agent/memory-export",
        summary="Download all that is on file as your own",
        response_class=Response,
        responses={200: {"description": "One JSON object a line.", "content": {JSON_LINES: _LINES}}, **_REFUSALS},
    )
    async def export_memories(  # pyright: ignore[reportUnusedFunction]  # the decorator registers it
        calling: Annotated[Any, signed_in],
    ) -> Response:
        """Answer every fact held at your own scope, with who said it and when."""
        ctx = context_of(calling, None, asked=actor)
        if isinstance(ctx, Response):
            return ctx
        pieces = _nothing() if memory is None else own_pieces(memory.provider, ctx)
        try:
            # Before the status is sent: a store that is away is a 500 and no file that breaks off.
            first = await anext(pieces, b"")
        except OnfileError as error:
            return not_now("export", error)
        return StreamingResponse(
            _sent(first, pieces),
            media_type=JSON_LINES,
            headers={**NO_STORE, **AS_A_FILE},
        )

    @router.delete(
        "/agent/memories",
        summary="Delete all facts of your own",
        response_model=AllForgotten,
        response_description="All of your own is deleted.",
        responses=_REFUSALS,
    )
    async def forget_memories(  # pyright: ignore[reportUnusedFunction]  # the decorator registers it
        request: Request, calling: Annotated[Any, signed_in]
    ) -> Response:
        """Delete every fact held at your own scope and answer how many there were; there is no way back."""
        # A route also matches its path with a line break behind it, and a slip must not delete everything.
        if request.scope["path"].endswith("\n"):
            raise HTTPException(404)
        return response(await forget_all_answer(memory, calling=calling, asked=actor))


async def _nothing() -> AsyncGenerator[bytes]:
    for none in ():
        yield none


async def _sent(first: bytes, rest: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    yield first
    try:
        async for piece in rest:
            yield piece
    except OnfileError as error:
        _log.error("could not finish the export: %s: %s", type(error).__name__, error)
        # The status is sent: only a connection that breaks tells that this is not all.
        raise
