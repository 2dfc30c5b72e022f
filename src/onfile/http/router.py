"""The routes by which a person reads what is on file about them and deletes what is theirs."""

# No `from __future__ import annotations` here: FastAPI could not resolve `Annotated[Actor, Depends(actor)]`
# written as text inside a function, and would take the actor from the query string.

from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel
from starlette.convertors import Convertor, register_url_convertor
from starlette.responses import JSONResponse, Response

from ..errors import OnfileError
from ..memory import Memory
from ..wire.entries import WireEntry, entries_json
from .own import add_own_routes
from .problems import NO_STORE, documented, problem
from .signed_in import NOT_NOW, NOT_SIGNED_IN, context_of, not_now

NOT_ON_FILE = "No such fact is on file about you."


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

    forgotten: Literal[True]


# Described by hand and read from the request: no text is refused, and a parameter that FastAPI knows
# of would put its 422 into the document, which these routes never answer.
_ID: dict[str, Any] = {
    "name": "id",
    "in": "path",
    "required": True,
    "description": "The fact's id, as read. Percent-encode it: any text is an id.",
    "schema": {"type": "string"},
    "example": "mem_01KXMRVAW0931T6B7DRGWD81YQ",
}
_THREAD_ID: dict[str, Any] = {
    "name": "threadId",
    "in": "query",
    "required": False,
    "description": "The conversation that the page was opened from, for the scope resolver.",
    "schema": {"type": "string"},
}


def memory_router(memory: Memory | None, *, actor: Callable[..., Any]) -> APIRouter:
    """Build the routes by which a person reads, downloads and deletes what is theirs, for your application.

    Args:
        memory: What to read from; None for an application without memory, where nothing is on file.
        actor: Your own dependency: a function, class or generator that FastAPI can call, returning
            the `Actor` who is signed in. What it raises reaches your handlers unchanged; None from
            it answers 401, and anything that is no actor 500, with a line in the log. Nothing else in
            a request says who is calling.

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
        response_description="What applies to you, in the order of the assistant's own block.",
        responses=documented(unauthorized=NOT_SIGNED_IN, internal_server_error=NOT_NOW),
        openapi_extra={"parameters": [_THREAD_ID]},
    )
    async def read_memories(  # pyright: ignore[reportUnusedFunction]  # the decorator registers it
        request: Request, calling: Annotated[Any, signed_in]
    ) -> Response:
        """Answer every fact that applies to you, with the values that each one beat."""
        ctx = context_of(calling, request.query_params.get("threadId"), asked=actor)
        if isinstance(ctx, Response):
            return ctx
        if memory is None:
            return Response(b"[]", media_type="application/json", headers=NO_STORE)
        try:
            entries = await memory.read_back(ctx)
        except OnfileError as error:
            return not_now("read", error)
        return Response(entries_json(entries), media_type="application/json", headers=NO_STORE)

    @router.delete(
        "/agent/memories/{id:onfile_any_text}",
        summary="Delete one fact of your own",
        response_model=Forgotten,
        response_description="The fact is deleted, with all that was derived from it.",
        responses=documented(
            unauthorized=NOT_SIGNED_IN,
            forbidden="This is held at [tenant:acme], not at your own scope; "
            "someone who administers [tenant:acme] can delete it.",
            not_found=NOT_ON_FILE,
            internal_server_error=NOT_NOW,
        ),
        openapi_extra={"parameters": [_ID, _THREAD_ID]},
    )
    async def forget_memory(  # pyright: ignore[reportUnusedFunction]  # the decorator registers it
        request: Request, calling: Annotated[Any, signed_in]
    ) -> Response:
        """Delete a fact held at your own scope; there is no way back."""
        memory_id: str = request.path_params["id"]
        ctx = context_of(calling, request.query_params.get("threadId"), asked=actor)
        if isinstance(ctx, Response):
            return ctx
        if memory is None:
            return problem(404, NOT_ON_FILE)
        try:
            outcome = await memory.forget(memory_id, ctx)
        except OnfileError as error:
            return not_now("forget", error)
        if outcome.status == "forgotten":
            return JSONResponse({"forgotten": True}, headers=NO_STORE)
        if outcome.status == "forbidden":
            return problem(403, outcome.reason or NOT_ON_FILE)
        # One answer for what does not exist and for what this person may not know of.
        return problem(404, NOT_ON_FILE)

    add_own_routes(router, memory, actor)
    return router
