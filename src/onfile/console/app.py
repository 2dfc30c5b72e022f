"""The console as an application, and a local server for it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn
from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from ..errors import OnfileError, ScopeError
from ..http import memory_router
from ..http.problems import problem
from ..memory import Memory
from ..records import Actor
from ..wire.answers import NOT_NOW
from .access import LOCAL_HOSTS, Doorkeeper
from .no_chat import NoChat
from .pages import Pages
from .rendering import Rendering

if TYPE_CHECKING:
    from .chat import ChatPages
    from .conversations import Conversations

_STATIC = Path(__file__).parent / "static"
_SECONDS_TO_END = 3
_ANY_ADDRESS = frozenset({"0.0.0.0", "::", ""})  # noqa: S104  # recognised, not bound

NO_PAGE = "There is no such page here."


def create_app(
    memory: Memory,
    *,
    token: str | None,
    actors: Sequence[Actor],
    title: str = "onfile",
    chat: Conversations | None = None,
) -> FastAPI:
    """Build the console: its pages, and the routes under `/agent` for the actor that the address names.

    Args:
        memory: What to show and to record in.
        token: What the first request must carry, as `?token=…` in a browser or as a bearer token
            for the API. None lets everyone on this machine in.
        actors: Whom to offer in the list; the operator may name anybody else.
        title: What the pages call themselves.
        chat: The conversations of the chat page, `setup()` being done; without them the page says what is missing.
    """
    frame = Rendering(actors=actors, title=title)
    talk = _chat_pages(chat, frame)
    hosts = set(LOCAL_HOSTS)

    def refuse(request: Request, status: int, words: str) -> Response:
        if request.url.path.startswith("/agent/"):
            return problem(status, words)
        return frame.refuse(request, status, words)

    async def not_found(request: Request, error: Exception) -> Response:  # noqa: ARG001  # the signature of a handler
        return refuse(request, 404, NO_PAGE)

    async def broken_promise(request: Request, error: Exception) -> Response:
        # A `ScopeError` tells the operator what to set right; it names no fact and no scope.
        return refuse(request, 400, f"{error}.") if isinstance(error, ScopeError) else refuse(request, 500, NOT_NOW)

    app = FastAPI(
        title=title,
        # The interactive documentation loads its scripts from elsewhere, which the policy forbids.
        openapi_url=None,
        routes=[*Pages(memory, frame).routes(), *talk.routes()],
        lifespan=_stopping(talk),
        middleware=[Middleware(Doorkeeper, token=token, hosts=hosts, refuse=refuse)],
        exception_handlers={404: not_found, OnfileError: broken_promise},
    )
    app.state.hosts = hosts
    app.include_router(memory_router(memory, actor=frame.chosen))
    app.mount("/static", StaticFiles(directory=_STATIC), name="static")
    return app


def _chat_pages(chat: Conversations | None, frame: Rendering) -> ChatPages | NoChat:
    if chat is None:
        return NoChat(frame)
    from .chat import ChatPages  # what turns need is in another extra

    return ChatPages(chat, frame)


def _stopping(talk: ChatPages | NoChat) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:  # noqa: ARG001  # the signature of a lifespan
        yield
        await talk.stop()

    return lifespan


def run_server(app: FastAPI, *, host: str = "127.0.0.1", port: int = 8377) -> None:
    """Serve the console until it is interrupted.

    Args:
        app: From `create_app`.
        host: The address to listen on; the pages then answer under this name as well.
        port: The port; 0 takes a free one.
    """
    app.state.hosts.add("*" if host in _ANY_ADDRESS else host.strip("[]").lower())
    # No access log: it would keep the token of the first address, and whose page was read.
    uvicorn.run(
        app,
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        server_header=False,
        # A reply that is being streamed does not keep the server from ending; its turn is kept.
        timeout_graceful_shutdown=_SECONDS_TO_END,
    )
