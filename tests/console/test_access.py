"""Who gets into the console and who does not."""

from contextlib import asynccontextmanager

import httpx
import pytest

from onfile.console.app import create_app
from onfile.memory import Memory
from onfile.records import Actor
from onfile.testing import InMemoryMemoryProvider
from tests.facts import fact

HOME = "http://127.0.0.1:8377"
TOKEN = "t0ken-of-this-start"


def console(token: str | None = TOKEN, **settings) -> httpx.AsyncClient:
    records = [fact("units", "miles", id="mem_1"), fact(scope="actor:bob", id="mem_2")]
    memory = Memory(InMemoryMemoryProvider(records=records), **settings)
    app = create_app(memory, token=token, actors=[Actor(id="ana"), Actor(id="bob")])
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=HOME)


@asynccontextmanager
async def signed_in():
    async with console() as http:
        await http.get("/", params={"token": TOKEN})
        yield http


async def test_the_printed_address_sets_a_cookie_and_leads_away_from_the_token() -> None:
    async with console() as http:
        answer = await http.get("/turn", params={"actor": "ana", "token": TOKEN})
        assert answer.status_code == 303
        assert answer.headers["location"] == "/turn?actor=ana"
        cookie = answer.headers["set-cookie"]
        assert "httponly" in cookie.lower()
        assert "samesite=strict" in cookie.lower()
        assert TOKEN not in cookie
        assert (await http.get("/")).status_code == 200


async def test_the_way_from_the_token_never_leads_to_another_site() -> None:
    async with console() as http:
        answer = await http.get(f"{HOME}//evil.example/?token={TOKEN}")
        assert answer.headers["location"] == "/evil.example/"


@pytest.mark.parametrize("path", ["/", "/turn", "/forget?fact=mem_1", "/nothing", "/docs", "/openapi.json"])
@pytest.mark.parametrize("query", ["", "token=", "token=wrong", "token=t0ken-of-this-starT"])
async def test_without_the_token_there_is_a_page_that_says_where_to_find_it_and_no_fact(path, query) -> None:
    async with console() as http:
        answer = await http.get(path + ("&" if "?" in path else "?") + query)
    assert answer.status_code == 401
    assert "onfile serve" in answer.text
    assert "miles" not in answer.text
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", "Bearer \xff"])
async def test_the_api_without_the_token_is_a_problem_in_json(header) -> None:
    async with console() as http:
        answer = await http.get("/agent/memories", headers={"authorization": header.encode("latin-1")})
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"


async def test_the_api_takes_the_token_as_bearer_and_the_actor_from_the_address() -> None:
    async with console() as http:
        http.headers["authorization"] = f"Bearer {TOKEN}"
        assert [entry["id"] for entry in (await http.get("/agent/memories?actor=bob")).json()] == ["mem_2"]
        assert (await http.delete("/agent/memories/mem_2")).status_code == 404, "the first actor is ana"
        assert (await http.delete("/agent/memories/mem_2?actor=bob")).json() == {"forgotten": True}


async def test_a_cookie_of_another_start_opens_nothing() -> None:
    async with console() as http:
        http.cookies.set("onfile_8377", TOKEN)
        assert (await http.get("/")).status_code == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8377", "", "[", "10.0.0.7"]
)
async def test_a_name_that_was_pointed_at_this_machine_is_not_answered(host) -> None:
    async with signed_in() as http:
        answer = await http.get("/", headers={"host": host})
    assert answer.status_code == 400
    assert "miles" not in answer.text


@pytest.mark.parametrize("host", ["localhost:8377", "127.0.0.1:8377", "[::1]:8377", "LOCALHOST:8377"])
async def test_every_name_of_this_machine_is_answered(host) -> None:
    async with signed_in() as http:
        assert (await http.get("/", headers={"host": host})).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "http://127.0.0.1:3000"},  # another server on this machine is the same site, not the same origin
        {"origin": "http://localhost:8377"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {},
    ],
)
async def test_a_page_of_another_origin_can_neither_delete_nor_record(headers) -> None:
    async with signed_in() as http:
        for answer in (
            await http.post("/forget", data={"actor": "ana", "fact": "mem_1"}, headers=headers),
            await http.post("/turn", data={"actor": "ana"}, headers=headers),
            await http.post("/turn/remember", data={"actor": "ana"}, headers=headers),
            await http.delete("/agent/memories/mem_1", headers=headers),
        ):
            assert answer.status_code == 403
        assert "miles" in (await http.get("/")).text


@pytest.mark.parametrize("headers", [{"origin": HOME}, {"sec-fetch-site": "same-origin"}])
async def test_our_own_page_can(headers) -> None:
    async with signed_in() as http:
        assert (await http.post("/forget", data={"actor": "ana", "fact": "mem_1"}, headers=headers)).status_code == 303
        assert "miles" not in (await http.get("/")).text


async def test_without_a_token_this_machine_is_let_in_but_other_pages_still_are_not() -> None:
    async with console(token=None) as http:
        assert (await http.get("/")).status_code == 200
        evil = await http.post(
            "/forget", data={"actor": "ana", "fact": "mem_1"}, headers={"origin": "https://evil.example"}
        )
        assert evil.status_code == 403
        assert (await http.delete("/agent/memories/mem_1")).status_code == 200


@pytest.mark.parametrize("path", ["/", "/turn", "/static/console.css", "/nothing", "/agent/memories", "/forget?fact=x"])
async def test_every_answer_forbids_what_a_page_of_ours_never_does(path) -> None:
    async with signed_in() as http:
        headers = (await http.get(path)).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == ("no-cache" if path.startswith("/static") else "no-store")


async def test_the_style_of_the_refusal_needs_no_token_and_nothing_else_is_served_beside_it() -> None:
    async with console() as http:
        assert (await http.get("/static/console.css")).status_code == 200
        assert (await http.get("/static/htmx.LICENSE.txt")).status_code == 200
        for path in ("/static/../app.py", "/static/%2e%2e/app.py", "/static/"):
            assert (await http.get(path)).status_code in {401, 404}


async def test_a_resolver_without_scopes_is_told_to_the_operator_in_words() -> None:
    async with console(token=None, scopes=lambda ctx: []) as http:
        answer = await http.get("/")
    assert answer.status_code == 400
    assert "return at least one token" in answer.text
