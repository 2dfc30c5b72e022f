"""The routes by which a person reads what is on file about them and deletes what is theirs."""

# No `from __future__ import annotations` here: FastAPI could not resolve `Annotated[Actor, Depends(actor)]`
# written as text inside a function, and would take the actor from the query string.

from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel
from starlette.convertors import Convertor, register_url_convertor
from starlette.responses import Response

from ..memory import Memory
from ..wire.answers import NOT_NOW, NOT_ON_FILE, NOT_SIGNED_IN, forget_answer, read_answer
from ..wire.entries import WireEntry
from .own import add_own_routes
from .problems import documented, response


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

    Raises:
        TypeError: The memory is no `Memory`, such as the provider itself.
    """
    if memory is not None and not isinstance(memory, Memory):  # pyright: ignore[reportUnnecessaryIsInstance]  # what untyped code hands over
        msg = f"memory_router takes a Memory, not {type(memory).__name__}; a provider goes into one: Memory(provider)"
        raise TypeError(msg)
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
        thread = request.query_params.get("threadId")
        return response(await read_answer(memory, calling=calling, thread_id=thread, asked=actor))

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
        memory_id, thread = request.path_params["id"], request.query_params.get("threadId")
        return response(await forget_answer(memory, memory_id, calling=calling, thread_id=thread, asked=actor))

    add_own_routes(router, memory, actor)
    return router
