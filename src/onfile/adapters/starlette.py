"""Plain Starlette: the routes by which a person reads, downloads and deletes what is on file about them."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable

from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..memory import Memory
from ..records import Actor
from ..wire.answers import Answer, export_answer, forget_all_answer, forget_answer, read_answer

ActorOf = Callable[[Request], Awaitable[Actor | None] | Actor | None]


class _AnyText(Convertor[str]):
    """A path's rest as it is; Starlette's own `path` stops at a line break."""

    regex = r"(?s:.*)\Z"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("onfile_record_id", _AnyText())


def memory_routes(memory: Memory | None, *, actor: ActorOf) -> list[Route]:
    """Build what `memory_router` builds for FastAPI: `Starlette(routes=memory_routes(...))`.

    `GET` and `DELETE /agent/memories`, `DELETE /agent/memories/{id}` and `GET /agent/memory-export`.

    Args:
        memory: What to read from; None for an application without memory.
        actor: Your own function of the request, sync or async, returning the `Actor` who is signed
            in, or None for nobody. What it raises reaches your handlers unchanged.
    """

    async def calling(request: Request) -> Actor | None:
        answer = actor(request)
        return await answer if inspect.isawaitable(answer) else answer

    async def read_memories(request: Request) -> Response:
        thread = request.query_params.get("threadId")
        return _response(await read_answer(memory, calling=await calling(request), thread_id=thread, asked=actor))

    async def forget_memory(request: Request) -> Response:
        record_id, thread = request.path_params["id"], request.query_params.get("threadId")
        return _response(
            await forget_answer(memory, record_id, calling=await calling(request), thread_id=thread, asked=actor)
        )

    async def forget_memories(request: Request) -> Response:
        return _response(await forget_all_answer(memory, calling=await calling(request), asked=actor))

    async def export_memories(request: Request) -> Response:
        return _response(await export_answer(memory, calling=await calling(request), asked=actor))

    return [
        Route("/agent/memory-export", export_memories, methods=["GET"]),
        Route("/agent/memories", read_memories, methods=["GET"]),
        Route("/agent/memories", forget_memories, methods=["DELETE"]),
        Route("/agent/memories/{id:onfile_record_id}", forget_memory, methods=["DELETE"]),
    ]


def _response(answer: Answer) -> Response:
    return Response(answer.body, status_code=answer.status, media_type=answer.media_type, headers=answer.headers)
