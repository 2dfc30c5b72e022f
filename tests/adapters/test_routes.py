"""The routes for plain Starlette and for Flask answer what the FastAPI router answers, byte for byte."""

from __future__ import annotations

import threading
from typing import Any

import httpx
import pytest

from .installed import needs

needs("starlette", "flask", "fastapi")

from fastapi import FastAPI
from fastapi import Request as FastAPIRequest
from flask import Flask, abort
from flask import request as flask_request
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request

from onfile import Actor, Memory
from onfile.adapters.flask import memory_blueprint
from onfile.adapters.starlette import memory_routes
from onfile.blocking import Blocking
from onfile.http import memory_router
from onfile.testing import InMemoryMemoryProvider
from tests.facts import fact

from .scripts import BrokenProvider

RECORDS = [
    fact("units", "miles", id="mem_mine"),
    fact("units", "kilometres", scope="tenant:acme", author="human", id="mem_wide", pinned=True),
    fact("lunch", "tofu", scope="actor:bo", id="mem_others"),
]


def actor_named(name: str | None) -> Any:
    if name == "a-text":
        return "ana"
    if name == "nameless":
        return Actor(id="")
    return Actor(id=name, tenant_ref="acme") if name else None


async def starlette_actor(request: Request) -> Any:
    if request.headers.get("X-Actor") == "banned":
        raise HTTPException(418, "the host says so")
    return actor_named(request.headers.get("X-Actor"))


async def fastapi_actor(request: FastAPIRequest) -> Any:
    return await starlette_actor(request)


def flask_actor() -> Any:
    name = flask_request.headers.get("X-Actor")
    if name == "banned":
        abort(418, "the host says so")
    return actor_named(name)


class Answers:
    """One application's answers, by status, content type and body."""

    def __init__(self, memory: Memory | None) -> None:
        self.memory = memory

    def fastapi(self, method: str, path: str, headers: dict[str, str]) -> Any:
        app = FastAPI()
        app.include_router(memory_router(self.memory, actor=fastapi_actor))
        return self._asgi(app, method, path, headers)

    def starlette(self, method: str, path: str, headers: dict[str, str]) -> Any:
        app = Starlette(routes=memory_routes(self.memory, actor=starlette_actor))
        return self._asgi(app, method, path, headers)

    def flask(self, method: str, path: str, headers: dict[str, str]) -> Any:
        assert self.memory is not None
        app = Flask("host")
        with Blocking(self.memory) as memory:
            app.register_blueprint(memory_blueprint(memory, actor=flask_actor))
            transport = httpx.WSGITransport(app)
            with httpx.Client(transport=transport, base_url="http://host") as client:
                return told(client.request(method, path, headers=headers))

    def _asgi(self, app: Any, method: str, path: str, headers: dict[str, str]) -> Any:
        import asyncio

        async def ask() -> Any:
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://host") as client:
                return told(await client.request(method, path, headers=headers))

        return asyncio.run(ask())


def told(answer: httpx.Response) -> tuple[int, str, str, bytes]:
    kept = "; ".join(answer.headers.get(name, "") for name in ("cache-control", "content-disposition"))
    return answer.status_code, answer.headers["content-type"].partition(";")[0], kept, answer.content


@pytest.mark.parametrize("framework", ["starlette", "flask"])
@pytest.mark.parametrize(
    ("method", "path", "actor"),
    [
        ("GET", "/agent/memories", None),
        ("GET", "/agent/memories", "ana"),
        ("GET", "/agent/memories?threadId=t9", "ana"),
        ("DELETE", "/agent/memories/mem_mine", None),
        ("DELETE", "/agent/memories/mem_mine", "ana"),
        ("DELETE", "/agent/memories/mem_wide", "ana"),
        ("DELETE", "/agent/memories/mem_others", "ana"),
        ("DELETE", "/agent/memories/mem_never", "ana"),
        ("DELETE", "/agent/memories/mem_mine%0A", "ana"),
        ("DELETE", "/agent/memories/a%2Fb%2Fc", "ana"),
        ("DELETE", "/agent/memories/%00", "ana"),
        ("GET", "/agent/memory-export", None),
        ("GET", "/agent/memory-export", "ana"),
        ("DELETE", "/agent/memories", None),
        ("DELETE", "/agent/memories", "ana"),
        ("DELETE", "/agent/memories/", "ana"),
        ("GET", "/agent/memories", "a-text"),
        ("DELETE", "/agent/memories/mem_mine", "nameless"),
    ],
)
def test_the_answer_is_that_of_the_fastapi_router(framework: str, method: str, path: str, actor: str | None):
    headers = {"X-Actor": actor} if actor else {}

    def answers() -> Answers:
        return Answers(Memory(InMemoryMemoryProvider(records=RECORDS)))

    asked = getattr(answers(), framework)(method, path, headers)

    assert asked == answers().fastapi(method, path, headers)


def test_a_store_that_fails_answers_alike_too():
    answers = Answers(Memory(BrokenProvider()))
    headers = {"X-Actor": "ana"}

    for method, path in (("GET", "/agent/memories"), ("DELETE", "/agent/memories"), ("GET", "/agent/memory-export")):
        expected = answers.fastapi(method, path, headers)

        assert expected[0] == 500
        assert answers.starlette(method, path, headers) == expected
        assert answers.flask(method, path, headers) == expected


def test_an_application_without_memory_has_nothing_on_file():
    answers = Answers(None)

    asked = [("GET", "/agent/memories"), ("DELETE", "/agent/memories/x"), ("DELETE", "/agent/memories")]
    for method, path in [*asked, ("GET", "/agent/memory-export")]:
        headers = {"X-Actor": "ana"}
        assert answers.starlette(method, path, headers) == answers.fastapi(method, path, headers)


def test_what_the_host_s_own_function_raises_reaches_its_handlers():
    answers = Answers(Memory(InMemoryMemoryProvider()))
    headers = {"X-Actor": "banned"}

    assert answers.starlette("GET", "/agent/memories", headers)[0] == 418
    assert answers.flask("GET", "/agent/memories", headers)[0] == 418


def test_a_flask_server_of_several_threads_serves_each_person_their_own():
    # given one blueprint and eight people at once
    records = [fact("name", f"is person {n}", scope=f"actor:p{n}") for n in range(8)]
    with Blocking(Memory(InMemoryMemoryProvider(records=records))) as memory:
        app = Flask("host")
        app.register_blueprint(memory_blueprint(memory, actor=flask_actor))
        seen: dict[int, list[str]] = {}

        def read(number: int) -> None:
            answer = app.test_client().get("/agent/memories", headers={"X-Actor": f"p{number}"})
            seen[number] = [entry["text"] for entry in answer.get_json()]

        threads = [threading.Thread(target=read, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert seen == {number: [f"is person {number}"] for number in range(8)}
