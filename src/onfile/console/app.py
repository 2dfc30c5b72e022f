"""The console as an application, and a local server for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

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
from .access import LOCAL_HOSTS, Doorkeeper
from .pages import Pages

_STATIC = Path(__file__).parent / "static"
_ANY_ADDRESS = frozenset({"0.0.0.0", "::", ""})  # noqa: S104  # recognised, not bound

NO_PAGE = "There is no such page here."
NOT_NOW = "What is on file could not be reached; nothing was changed."


def create_app(memory: Memory, *, token: str | None, actors: Sequence[Actor], title: str = "onfile") -> FastAPI:
    """Build the console: two pages, and the routes under `/agent` for the actor that the address names.

    Args:
        memory: What to show and to record in.
        token: What the first request must carry, as `?token=…` in a browser or as a bearer token
            for the API. None lets everyone on this machine in.
        actors: Whom to offer in the list; the operator may name anybody else.
        title: What the pages call themselves.
    """
    pages = Pages(memory, actors=actors, title=title)
    hosts = set(LOCAL_HOSTS)

    def refuse(request: Request, status: int, words: str) -> Response:
        if request.url.path.startswith("/agent/"):
            return problem(status, words)
        return pages.refuse(request, status, words)

    async def not_found(request: Request, error: Exception) -> Response:  # noqa: ARG001  # the signature of a handler
        return refuse(request, 404, NO_PAGE)

    async def broken_promise(request: Request, error: Exception) -> Response:
        # A `ScopeError` tells the operator what to set right; it names no fact and no scope.
        return refuse(request, 400, f"{error}.") if isinstance(error, ScopeError) else refuse(request, 500, NOT_NOW)

    app = FastAPI(
        title=title,
        # The interactive documentation loads its scripts from elsewhere, which the policy forbids.
        openapi_url=None,
        routes=list(pages.routes()),
        middleware=[Middleware(Doorkeeper, token=token, hosts=hosts, refuse=refuse)],
        exception_handlers={404: not_found, OnfileError: broken_promise},
    )
    app.state.hosts = hosts
    app.include_router(memory_router(memory, actor=pages.chosen))
    app.mount("/static", StaticFiles(directory=_STATIC), name="static")
    return app


def run_server(app: FastAPI, *, host: str = "127.0.0.1", port: int = 8377) -> None:
    """Serve the console until it is interrupted.

    Args:
        app: From `create_app`.
        host: The address to listen on; the pages then answer under this name as well.
        port: The port; 0 takes a free one.
    """
    app.state.hosts.add("*" if host in _ANY_ADDRESS else host.strip("[]").lower())
    # No access log: it would keep the token of the first address, and whose page was read.
    uvicorn.run(app, host=host, port=port, log_level="warning", access_log=False, server_header=False)
