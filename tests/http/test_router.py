"""What a person reads and deletes over HTTP, and what nobody learns from a refusal."""

import json
from collections.abc import Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from typing import Annotated
from urllib.parse import unquote

import httpx
import pytest
from fastapi import Depends, FastAPI, Header, HTTPException
from fastapi.responses import JSONResponse

from onfile.errors import StoreError
from onfile.http import memory_router
from onfile.memory import Memory
from onfile.records import Actor, MemoryOrigin
from onfile.testing import InMemoryMemoryProvider
from tests.facts import fact

ANA = {"authorization": "Bearer ana acme"}
BOB = {"authorization": "Bearer bob acme"}


async def signed_in(authorization: Annotated[str | None, Header()] = None) -> Actor:
    if authorization is None:
        raise HTTPException(401, "who is there?", headers={"WWW-Authenticate": "Bearer"})
    _, name, *tenant = authorization.split()
    return Actor(id=name, tenant_ref=tenant[0] if tenant else None)


def app_with(*records, actor: Callable = signed_in, **settings) -> FastAPI:
    app = FastAPI()
    app.include_router(memory_router(Memory(InMemoryMemoryProvider(records=records), **settings), actor=actor))
    return app


@asynccontextmanager
async def client(app: FastAPI):
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://onfile.test") as opened:
        yield opened


async def test_a_person_reads_every_entry_with_the_values_it_beat() -> None:
    mine = fact("units", "miles", id="mem_mine", minutes=0.5)
    wide = fact("Units", "kilometres", scope="global", author="human", id="mem_wide")
    pinned = fact(
        "labels",
        "two sides",
        scope="tenant:acme",
        id="mem_pin",
        pinned=True,
        origin=MemoryOrigin(author="human"),
    )
    async with client(app_with(mine, wide, pinned, fact(scope="actor:bob"))) as http:
        answer = await http.get("/agent/memories", params={"threadId": "t9"}, headers=ANA)

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.json() == [
        {
            "id": "mem_pin",
            "key": "labels",
            "text": "two sides",
            "scope": "tenant:acme",
            "origin": {"author": "human", "threadId": None, "runId": None, "actorRef": None},
            "updatedAt": "2026-09-01T12:00:00Z",
            "pinned": True,
        },
        {
            "id": "mem_mine",
            "key": "units",
            "text": "miles",
            "scope": "actor:ana",
            "origin": {"author": "agent", "threadId": "t1", "runId": "r1", "actorRef": "ana"},
            "updatedAt": "2026-09-01T12:00:30Z",
            "overrides": [{"id": "mem_wide", "scope": "global", "text": "kilometres", "author": "human"}],
        },
    ]


async def test_a_person_sees_and_deletes_fact_301_whatever_the_ceiling_of_a_block() -> None:
    records = [fact(f"key {number}", id=f"mem_{number}") for number in range(1, 302)]
    async with client(app_with(*records, max_memories=3)) as http:
        assert len((await http.get("/agent/memories", headers=ANA)).json()) == 301
        assert (await http.delete("/agent/memories/mem_301", headers=ANA)).status_code == 200
        assert len((await http.get("/agent/memories", headers=ANA)).json()) == 300


@pytest.mark.parametrize(
    ("moment", "shown"),
    [
        (datetime(2026, 3, 1, 9, 30, tzinfo=UTC), "2026-03-01T09:30:00Z"),
        (datetime(2026, 3, 1, 9, 30, 0, 120, tzinfo=UTC), "2026-03-01T09:30:00.000120Z"),
        (datetime(2026, 3, 1, 9, 30, tzinfo=timezone(timedelta(hours=2))), "2026-03-01T07:30:00Z"),
        (datetime(2026, 3, 1, 9, 30), "2026-03-01T09:30:00Z"),  # noqa: DTZ001  # what a careless provider hands out
    ],
)
async def test_a_date_is_shown_in_utc_to_the_microsecond(moment, shown) -> None:
    record = fact(minutes=(moment.replace(tzinfo=moment.tzinfo or UTC) - fact().updated_at).total_seconds() / 60)
    object.__setattr__(record, "updated_at", moment)
    async with client(app_with(record)) as http:
        assert (await http.get("/agent/memories", headers=ANA)).json()[0]["updatedAt"] == shown


async def test_text_in_any_script_arrives_as_itself_and_a_broken_character_breaks_no_page() -> None:
    async with client(app_with(fact("請求先", "横浜 👩‍🚒 \ud800 é"))) as http:
        answer = await http.get("/agent/memories", headers=ANA)
    assert "請求先" in answer.text
    assert answer.json()[0]["text"] == "横浜 👩‍🚒 \ufffd é"


async def test_deleting_ones_own_fact_says_so_and_it_is_gone() -> None:
    async with client(app_with(fact(id="mem_1"), fact("labels", id="mem_2"))) as http:
        answer = await http.delete("/agent/memories/mem_1", params={"threadId": "t1"}, headers=ANA)
        left = (await http.get("/agent/memories", headers=ANA)).json()
        again = await http.delete("/agent/memories/mem_1", headers=ANA)
    assert (answer.status_code, answer.json()) == (200, {"forgotten": True})
    assert answer.headers["cache-control"] == "no-store"
    assert [entry["id"] for entry in left] == ["mem_2"]
    assert again.status_code == 404


async def test_a_wider_fact_is_forbidden_with_the_reason_as_winner_and_as_beaten_value() -> None:
    winner = fact("labels", scope="tenant:acme", id="mem_winner", author="human")
    beaten = fact("units", "kilometres", scope="global", id="mem_beaten", author="human")
    async with client(app_with(winner, beaten, fact("units", "miles"))) as http:
        refusals = [await http.delete(f"/agent/memories/{name}", headers=ANA) for name in ("mem_winner", "mem_beaten")]
        left = (await http.get("/agent/memories", headers=ANA)).json()
    for refusal, scope in zip(refusals, ("tenant:acme", "global"), strict=True):
        assert refusal.status_code == 403
        assert refusal.headers["content-type"] == "application/problem+json"
        body = refusal.json()
        assert set(body) == {"type", "title", "status", "detail"}
        assert (body["type"], body["title"], body["status"]) == ("about:blank", "Forbidden", 403)
        assert scope in body["detail"]
        assert "mem_" not in refusal.text
    assert len(left) == 2


ODD_IDS = [
    "mem_of_bob",  # exists, but not for ana
    "mem_unknown",
    "a/b/c",
    "a%2Fb",
    "..",
    "%2E%2E%2Fadmin",
    "%2e",
    ".",
    "%20",
    "",
    "%00",
    "mem%00",
    "mem_1%0A",
    "mem_1%0D%0A",
    "%0A",
    "mem_1/",
    "mem_1%20",
    "MEM_1",
    "%F0%9F%9A%9A",
    "%ED%A0%80",
    "%FF%FE",
    "%25",
    "{id}",
    "null",
    "x" * 5_000,
    "%3Cscript%3E",
    "';drop%20table",
]


@pytest.mark.parametrize("id", ODD_IDS)
async def test_an_id_the_actor_cannot_see_is_missing_byte_for_byte_like_one_that_never_was(id) -> None:
    app = app_with(fact(id="mem_1"), fact(id="mem_of_bob", scope="actor:bob"))
    never = await delete_raw(app, "/agent/memories/mem_never")
    assert await delete_raw(app, f"/agent/memories/{id}") == never
    status, headers, body = never
    assert (status, headers["content-type"]) == (404, "application/problem+json")
    assert json.loads(body)["title"] == "Not Found"
    async with client(app) as http:
        assert len((await http.get("/agent/memories", headers=ANA)).json()) == 1
        assert len((await http.get("/agent/memories", headers=BOB)).json()) == 1


async def delete_raw(app: FastAPI, path: str) -> tuple[int, dict[str, str], bytes]:
    """Delete as a server would pass the request on: a client tidies `..` away and refuses some bytes."""
    raw = path.encode()
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "DELETE",
        "scheme": "http",
        "path": unquote(path),
        "raw_path": raw,
        "root_path": "",
        "query_string": b"",
        "headers": [(b"host", b"onfile.test"), (b"authorization", ANA["authorization"].encode())],
    }
    sent = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    start, *bodies = sent
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    return start["status"], headers, b"".join(message.get("body", b"") for message in bodies)


@pytest.mark.parametrize("query", ["threadId=", "threadId=a&threadId=b", "threadId=%00", "threadId[]=1", "actor=bob"])
async def test_nothing_in_the_query_is_an_error_or_widens_what_is_seen(query) -> None:
    async with client(app_with(fact(id="mem_1"), fact(scope="actor:bob", id="mem_2"))) as http:
        answer = await http.get(f"/agent/memories?{query}", headers=ANA)
        assert [entry["id"] for entry in answer.json()] == ["mem_1"]
        assert (await http.delete(f"/agent/memories/mem_2?{query}", headers=ANA)).status_code == 404
        assert (await http.delete(f"/agent/memories/mem_1?{query}", headers=ANA)).status_code == 200


async def test_the_resolver_is_told_the_thread_and_that_nobody_else_reads_along() -> None:
    seen = []

    def scopes(ctx):
        seen.append((ctx.actor.id, ctx.thread_id, ctx.shared))
        return ["actor:ana"]

    async with client(app_with(scopes=scopes)) as http:
        await http.get("/agent/memories?threadId=t7", headers=ANA)
        await http.delete("/agent/memories/mem_1?threadId=", headers=ANA)
    assert seen == [("ana", "t7", False), ("ana", None, False)]


@pytest.mark.parametrize("configured", [True, False])
async def test_who_is_not_signed_in_gets_the_hosts_own_refusal_with_memory_or_without(configured) -> None:
    app = FastAPI()
    memory = Memory(InMemoryMemoryProvider()) if configured else None
    app.include_router(memory_router(memory, actor=signed_in))
    async with client(app) as http:
        for answer in (await http.get("/agent/memories"), await http.delete("/agent/memories/mem_1")):
            assert answer.status_code == 401
            assert answer.json() == {"detail": "who is there?"}
            assert answer.headers["www-authenticate"] == "Bearer"


async def test_without_memory_nothing_is_on_file_and_nothing_can_be_deleted() -> None:
    app = FastAPI()
    app.include_router(memory_router(None, actor=signed_in))
    async with client(app) as http:
        read = await http.get("/agent/memories", headers=ANA)
        gone = await http.delete("/agent/memories/mem_1", headers=ANA)
    assert (read.status_code, read.json()) == (200, [])
    assert (gone.status_code, gone.headers["content-type"]) == (404, "application/problem+json")
    async with client(app_with()) as http:
        assert (await http.delete("/agent/memories/mem_1", headers=ANA)).content == gone.content


async def test_a_dependency_that_answers_nobody_is_a_401() -> None:
    async with client(app_with(actor=lambda: None)) as http:
        for answer in (await http.get("/agent/memories"), await http.delete("/agent/memories/mem_1")):
            assert answer.status_code == 401
            assert answer.headers["content-type"] == "application/problem+json"


def by_function() -> Actor:
    return Actor(id="ana")


def by_generator():
    yield Actor(id="ana")


async def by_async_generator():
    yield Actor(id="ana")


class BySelf(Actor):
    def __init__(self, x_name: Annotated[str, Header()] = "ana") -> None:
        super().__init__(id=x_name)


class ByInstance:
    async def __call__(self) -> Actor:
        return Actor(id="ana")


def by_another(actor: Annotated[Actor, Depends(by_generator)]) -> Actor:
    return actor


@pytest.mark.parametrize(
    "dependency",
    [by_function, by_generator, by_async_generator, BySelf, ByInstance(), by_another, lambda: Actor(id="ana")],
)
async def test_the_dependency_may_be_anything_that_fastapi_can_call(dependency) -> None:
    async with client(app_with(fact(id="mem_1"), fact(scope="actor:bob"), actor=dependency)) as http:
        assert [entry["id"] for entry in (await http.get("/agent/memories")).json()] == ["mem_1"]
        assert (await http.delete("/agent/memories/mem_1")).status_code == 200


async def test_the_hosts_tests_may_override_the_dependency() -> None:
    app = app_with(fact(id="mem_1"))
    app.dependency_overrides[signed_in] = lambda: Actor(id="ana")
    async with client(app) as http:
        assert len((await http.get("/agent/memories")).json()) == 1


async def test_an_exception_of_the_hosts_own_reaches_the_hosts_own_handler() -> None:
    class SessionExpiredError(Exception):
        pass

    def actor() -> Actor:
        raise SessionExpiredError

    app = app_with(actor=actor)
    app.add_exception_handler(SessionExpiredError, lambda request, error: JSONResponse({"session": "expired"}, 419))
    async with client(app) as http:
        answer = await http.get("/agent/memories")
    assert (answer.status_code, answer.json()) == (419, {"session": "expired"})


class SignIn:
    def __init__(self, token: str) -> None:
        self.token = token

    def __call__(self) -> object:
        return {"id": self.token}

    def __repr__(self) -> str:
        return f"SignIn({self.token!r})"


def nobody() -> Actor:
    return Actor(id="")


async def forgot_to_await() -> Actor:
    return Actor(id="ana")


ROUTES = [
    ("GET", "/agent/memories"),
    ("GET", "/agent/memory-export"),
    ("DELETE", "/agent/memories"),
    ("DELETE", "/agent/memories/mem_1"),
]


@pytest.mark.parametrize("memory", [None, Memory(InMemoryMemoryProvider(records=[fact(id="mem_1")]))])
@pytest.mark.parametrize(
    ("actor", "told"),
    [
        (nobody, "nobody answered an Actor, but the actor's id is empty or not a string"),
        (lambda: Actor(id=7), "<lambda> answered an Actor, but the actor's id is empty or not a string"),
        (lambda: Actor(id="secret", tenant_ref=""), "answered an Actor, but the actor's tenant_ref is empty"),
        (lambda: "secret", "<lambda> answered an object of type str"),
        (lambda: {"id": "secret"}, "<lambda> answered an object of type dict"),
        (lambda: forgot_to_await(), "<lambda> answered a coroutine that nobody awaited"),
        (SignIn("secret"), "SignIn answered an object of type dict"),
        (partial(SignIn("secret")), "functools.partial answered an object of type dict"),
    ],
)
async def test_an_actor_that_is_none_is_the_hosts_mistake_and_the_log_says_what_to_return(actor, told, memory, caplog):
    app = FastAPI()
    app.include_router(memory_router(memory, actor=actor))
    async with client(app) as http:
        answers = [await http.request(method, path) for method, path in ROUTES]

    assert {answer.status_code for answer in answers} == {500}
    assert {answer.headers["content-type"] for answer in answers} == {"application/problem+json"}
    assert {answer.json()["detail"] for answer in answers} == {
        "It could not be told who is signed in, so nothing was read or changed."
    }
    assert caplog.text.count(told) == len(ROUTES)
    assert "let it return onfile.Actor(id=…)" in caplog.text
    assert "secret" not in caplog.text


class Unreachable:
    async def list(self, request):
        msg = "the database is away"
        raise StoreError(msg) from ValueError("INSERT secret-fact")

    async def forget(self, request):
        raise NotImplementedError


async def test_a_store_that_fails_is_a_500_without_content_in_answer_or_log(caplog) -> None:
    app = FastAPI()
    app.include_router(memory_router(Memory(Unreachable()), actor=signed_in))
    async with client(app) as http:
        for answer in (
            await http.get("/agent/memories", headers=ANA),
            await http.delete("/agent/memories/mem_secret", headers=ANA),
        ):
            assert answer.status_code == 500
            assert answer.headers["content-type"] == "application/problem+json"
            assert "secret" not in answer.text
    assert "the database is away" in caplog.text
    assert "secret" not in caplog.text


async def test_a_resolver_that_names_no_scope_is_never_read_as_everything() -> None:
    async with client(app_with(fact(), scopes=lambda ctx: [])) as http:
        assert (await http.get("/agent/memories", headers=ANA)).status_code == 500


def test_openapi_shows_the_entries_and_no_way_to_say_who_one_is() -> None:
    schema = app_with(actor=by_function).openapi()
    read, forget = schema["paths"]["/agent/memories"]["get"], schema["paths"]["/agent/memories/{id}"]["delete"]
    assert [parameter["name"] for parameter in read["parameters"]] == ["threadId"]
    assert sorted(parameter["name"] for parameter in forget["parameters"]) == ["id", "threadId"]
    assert not any("requestBody" in operation for operation in (read, forget))
    entry = schema["components"]["schemas"]["WireEntry"]
    assert set(entry["properties"]) == {"id", "key", "text", "scope", "origin", "updatedAt", "pinned", "overrides"}


def resolved(schema: dict, document: dict) -> dict:
    name = schema.get("$ref", "").rpartition("/")[2]
    return document["components"]["schemas"][name] if name else schema


def differences(value, schema: dict, document: dict) -> list[str]:
    """Where a JSON value is not what the document says, as far as objects, lists and constants go."""
    schema = resolved(schema, document)
    if schema.get("type") == "array":
        return [one for item in value for one in differences(item, schema["items"], document)]
    if schema.get("type") != "object":
        return [] if value == schema.get("const", value) else [f"{value} is not {schema['const']}"]
    properties = schema["properties"]
    wrong = [f"{name} is missing" for name in schema.get("required", ()) if name not in value]
    wrong += [f"{name} is not described" for name in value if name not in properties]
    return wrong + [
        one for name in value if name in properties for one in differences(value[name], properties[name], document)
    ]


async def test_openapi_describes_every_answer_as_it_is_and_no_other() -> None:
    mine = fact("units", id="mem_mine", pinned=True)
    app = app_with(mine, fact("units", scope="tenant:acme", id="mem_wide"))
    gone, odd = FastAPI(), FastAPI()
    gone.include_router(memory_router(Memory(Unreachable()), actor=signed_in))
    odd.include_router(memory_router(None, actor=lambda: None))
    document = odd.openapi()
    answered: dict[tuple[str, str], set[str]] = {}

    for host, method, path, where in (
        (app, "GET", "/agent/memories?threadId=t", "/agent/memories"),
        (gone, "GET", "/agent/memories", "/agent/memories"),
        (odd, "GET", "/agent/memories", "/agent/memories"),
        (app, "GET", "/agent/memory-export", "/agent/memory-export"),
        (gone, "GET", "/agent/memory-export", "/agent/memory-export"),
        (odd, "GET", "/agent/memory-export", "/agent/memory-export"),
        (app, "DELETE", "/agent/memories/mem_wide", "/agent/memories/{id}"),
        (app, "DELETE", "/agent/memories/mem_none", "/agent/memories/{id}"),
        (app, "DELETE", "/agent/memories/mem_mine", "/agent/memories/{id}"),
        (gone, "DELETE", "/agent/memories/mem_mine", "/agent/memories/{id}"),
        (odd, "DELETE", "/agent/memories/mem_mine", "/agent/memories/{id}"),
        (app, "DELETE", "/agent/memories", "/agent/memories"),
        (gone, "DELETE", "/agent/memories", "/agent/memories"),
        (odd, "DELETE", "/agent/memories", "/agent/memories"),
    ):
        async with client(host) as http:
            answer = await http.request(method, path, headers=ANA)
        described = document["paths"][where][method.lower()]["responses"][str(answer.status_code)]
        media_type = answer.headers["content-type"]
        assert list(described["content"]) == [media_type]
        if "json" in media_type.partition("+")[2] or media_type == "application/json":
            assert not differences(answer.json(), described["content"][media_type]["schema"], document)
        answered.setdefault((where, method.lower()), set()).add(str(answer.status_code))

    for (where, method), statuses in answered.items():
        assert set(document["paths"][where][method]["responses"]) == statuses
    assert len(answered) == sum(len(operations) for operations in document["paths"].values())


def test_openapi_shows_an_example_of_every_refusal_and_every_entry() -> None:
    document = app_with(actor=by_function).openapi()

    for operations in document["paths"].values():
        for operation in operations.values():
            for status, described in operation["responses"].items():
                for media_type, content in described["content"].items():
                    if media_type == "application/problem+json":
                        assert content["example"]["status"] == int(status)
                        assert not differences(content["example"], content["schema"], document)
    entry = document["components"]["schemas"]["WireEntry"]
    assert not differences(entry["examples"][0], entry, document)


def test_a_parameter_of_the_hosts_own_sign_in_is_described_as_fastapi_answers_it() -> None:
    def by_number(x_person: Annotated[int, Header()]) -> Actor:
        return Actor(id=str(x_person))

    read = app_with(actor=by_number).openapi()["paths"]["/agent/memories"]["get"]

    assert sorted(parameter["name"] for parameter in read["parameters"]) == ["threadId", "x-person"]
    assert "422" in read["responses"]


async def test_the_host_may_mount_it_under_a_prefix_of_its_own() -> None:
    app = FastAPI()
    memory = Memory(InMemoryMemoryProvider(records=[fact(id="a/b")]))
    app.include_router(memory_router(memory, actor=signed_in), prefix="/api/v1")
    async with client(app) as http:
        assert (await http.delete("/api/v1/agent/memories/a/b", headers=ANA)).status_code == 200


async def test_two_people_at_once_never_see_each_other() -> None:
    import asyncio

    records = [fact(scope=f"actor:{name}", id=f"mem_{name}") for name in ("ana", "bob")]
    async with client(app_with(*records)) as http:
        answers = await asyncio.gather(
            *(http.get("/agent/memories", headers=headers) for _ in range(20) for headers in (ANA, BOB))
        )
    assert [answer.json()[0]["id"] for answer in answers] == ["mem_ana", "mem_bob"] * 20


def test_a_provider_in_the_place_of_a_memory_is_refused_where_the_router_is_built() -> None:
    with pytest.raises(TypeError, match=r"not InMemoryMemoryProvider; .*Memory\(provider\)"):
        memory_router(InMemoryMemoryProvider(), actor=signed_in)
