"""A person takes along all that is theirs, and deletes all of it, and nothing else."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import httpx
import pytest
from fastapi import FastAPI
from starlette.requests import ClientDisconnect

from onfile.errors import StoreError
from onfile.http import memory_router
from onfile.memory import Memory
from onfile.records import Actor
from onfile.stores import SqlMemoryProvider, StoredMemory
from onfile.testing import InMemoryMemoryProvider
from onfile.wire.lines import parse_line
from tests.facts import fact

ANA = Actor(id="ana", tenant_ref="acme")
RECORDS = [
    fact("units", "miles", id="mem_1"),
    fact("日付", "<b>ISO</b>", id="mem_2", author="human"),
    fact("labels", scope="tenant:acme", id="mem_3"),
    fact("units", scope="actor:bob", id="mem_4"),
    fact("units", scope="actor:ana ", id="mem_5"),
]


@asynccontextmanager
async def client(memory: Memory | None, *, who: Actor | None = ANA):
    app = FastAPI()
    app.include_router(memory_router(memory, actor=lambda: who))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://onfile.test") as opened:
        yield opened


@pytest.fixture(params=["sql", "testing"])
async def provider(request, tmp_path):
    if request.param == "testing":
        yield InMemoryMemoryProvider(records=RECORDS)
        return
    store = SqlMemoryProvider.from_url(f"sqlite:///{tmp_path}/facts.db")
    await store.setup()
    await store.restore([StoredMemory(record=record, created_at=record.updated_at) for record in RECORDS])
    yield store
    await store.aclose()


async def test_a_person_downloads_all_at_their_own_scope_with_origin_and_dates(provider):
    async with client(Memory(provider)) as http:
        answer = await http.get("/agent/memory-export")

    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert answer.headers["content-type"] == "application/jsonl"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert [line["id"] for line in lines] == ["mem_1", "mem_2"]
    assert lines[1]["text"] == "<b>ISO</b>"
    assert {"author", "origin", "updated_at", "created_at"} <= lines[0].keys()


async def test_a_download_tells_from_when_on_a_fact_is_not_read(tmp_path):
    store = SqlMemoryProvider.from_url(f"sqlite:///{tmp_path}/facts.db")
    await store.setup()
    expires_at = datetime(2990, 1, 1, tzinfo=UTC)
    await store.restore([StoredMemory(record=RECORDS[0], created_at=RECORDS[0].updated_at, expires_at=expires_at)])

    async with client(Memory(store)) as http:
        line = (await http.get("/agent/memory-export")).text

    read = parse_line(line)
    assert (read.expires_at, read.to_record(new_id="", now=expires_at)) == (expires_at, RECORDS[0])
    await store.aclose()


async def test_a_person_deletes_all_of_their_own_and_the_count_is_the_count(provider):
    seen = []
    async with client(Memory(provider, on_event=seen.append)) as http:
        first = await http.delete("/agent/memories")
        again = await http.delete("/agent/memories")
        left = (await http.get("/agent/memories")).json()

    assert (first.status_code, first.json(), again.json()) == (200, {"forgotten": 2}, {"forgotten": 0})
    assert first.headers["cache-control"] == "no-store"
    assert [entry["id"] for entry in left] == ["mem_3"]
    assert [dict(event.payload) for event in seen if event.name.endswith("forgotten")] == [
        {"scope": "actor:ana", "count": 2}
    ]


@pytest.mark.parametrize("path", ["/agent/memories%0A", "/agent/memories%00", "/agent/memories%20", "/agent//memories"])
async def test_a_path_that_is_only_nearly_the_one_deletes_nothing(path):
    provider = InMemoryMemoryProvider(records=RECORDS)

    async with client(Memory(provider)) as http:
        answer = await http.delete(path)
        left = (await http.get("/agent/memories")).json()

    assert (answer.status_code, len(left)) == (404, 3)


async def test_without_memory_there_is_nothing_to_take_along_or_to_delete():
    async with client(None) as http:
        assert (await http.get("/agent/memory-export")).content == b""
        assert (await http.delete("/agent/memories")).json() == {"forgotten": 0}


@pytest.mark.parametrize(("method", "path"), [("GET", "/agent/memory-export"), ("DELETE", "/agent/memories")])
async def test_nobody_signed_in_is_told_to_sign_in_with_or_without_memory(method, path):
    for memory in (None, Memory(InMemoryMemoryProvider(records=RECORDS))):
        async with client(memory, who=None) as http:
            answer = await http.request(method, path)
        assert (answer.status_code, answer.headers["cache-control"]) == (401, "no-store")


@pytest.mark.parametrize(("method", "path"), [("GET", "/agent/memory-export"), ("DELETE", "/agent/memories")])
async def test_a_store_that_is_away_is_told_in_our_words(method, path):
    class Away(InMemoryMemoryProvider):
        async def list(self, request):
            msg = "secret words"
            raise StoreError(msg)

    async with client(Memory(Away())) as http:
        answer = await http.request(method, path)

    assert answer.status_code == 500
    assert "secret" not in answer.text


class Counting(InMemoryMemoryProvider):
    """A store of many facts that tells how far it has been read, and may fail on the way."""

    def __init__(self, many: int, *, fails_at: int | None = None) -> None:
        super().__init__()
        self.many, self.fails_at, self.read = many, fails_at, 0

    async def export(self, *, scopes):
        assert scopes == ["actor:ana"]
        for number in range(self.many):
            if number == self.fails_at:
                msg = "the database is away"
                raise StoreError(msg)
            self.read += 1
            record = fact(f"question {number}", id=f"mem_{number}")
            yield StoredMemory(record=record, created_at=record.updated_at)


async def sent_by(app: FastAPI, on_body) -> list[dict]:
    """What an ASGI server is handed, message by message, as it comes."""
    messages: list[dict] = []

    async def receive():
        await asyncio.sleep(3600)

    async def send(message):
        messages.append(message)
        if message["type"] == "http.response.body":
            on_body(message)

    scope = {"type": "http", "asgi": {"version": "3.0", "spec_version": "2.4"}, "method": "GET", "headers": []}
    scope |= {"path": "/agent/memory-export", "query_string": b"", "http_version": "1.1", "scheme": "http"}
    await app(scope, receive, send)
    return messages


def app_over(provider) -> FastAPI:
    app = FastAPI()
    app.include_router(memory_router(Memory(provider), actor=lambda: ANA))
    return app


async def test_a_download_of_a_hundred_thousand_facts_is_sent_while_it_is_read():
    provider = Counting(100_000)
    ahead, lines = [], 0

    def on_body(message):
        nonlocal lines
        lines += message["body"].count(b"\n")
        ahead.append(provider.read - lines)

    await sent_by(app_over(provider), on_body)

    assert lines == 100_000
    assert max(ahead) <= 200


async def test_a_store_that_fails_half_way_breaks_the_download_off_instead_of_ending_it(caplog):
    messages = []

    with pytest.raises(StoreError):
        await sent_by(app_over(Counting(1_000, fails_at=500)), messages.append)

    assert messages
    assert all(message["more_body"] for message in messages)
    assert "could not finish the export: StoreError: the database is away" in caplog.text


async def test_nothing_more_is_read_for_a_reader_who_went_away():
    provider = Counting(100_000)

    def on_body(message):
        msg = "gone"
        raise OSError(msg)

    with pytest.raises(ClientDisconnect):
        await sent_by(app_over(provider), on_body)

    assert provider.read < 1_000
