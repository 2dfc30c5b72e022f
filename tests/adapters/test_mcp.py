"""MCP: a real client against the real server, in this process, over HTTP and over standard input and output."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from .installed import needs

needs("fastmcp")

import httpx
import uvicorn
from fastmcp import Client, FastMCP
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError
from fastmcp.server.auth import StaticTokenVerifier
from fastmcp.server.auth.providers.jwt import RSAKeyPair

from onfile import Actor, Memory
from onfile.adapters.mcp import memory_server, token_actor
from onfile.testing import InMemoryMemoryProvider
from tests.facts import fact

from .behaviour import ANA, BO, AdapterBehaviour, block_of, seam
from .scripts import BrokenProvider, Scripts, Step

RECORDS = [
    fact("lunch", "lentils", scope="actor:ana", id="mem_ana"),
    fact("lunch", "tofu", scope="actor:bo", id="mem_bo"),
    fact("units", "kilometres", scope="tenant:acme", author="human", id="mem_acme"),
]


def client_of(provider: Any = None, actor: Any = ANA) -> Client[Any]:
    memory = Memory(provider or InMemoryMemoryProvider(records=RECORDS))
    return Client(memory_server(memory, actor=lambda: actor))


async def called(client: Client[Any], name: str, **arguments: Any) -> tuple[bool, str]:
    result = await client.call_tool(name, arguments, raise_on_error=False)
    return not result.is_error, result.content[0].text if result.content else ""


async def told(client: Client[Any]) -> str:
    return (await client.read_resource("memory://me"))[0].text


class Host:
    """An MCP host over HTTP: it reads memory://me, offers the tools to its model and calls them."""

    def __init__(self, memory: Memory, scripts: Scripts, stack: AsyncExitStack) -> None:
        self.memory = memory
        self.scripts = scripts
        self.stack = stack
        self.lock = asyncio.Lock()
        self.url = ""

    async def turn(self, actor: Actor, message: str, *, thread: str = "t1") -> str:
        async with self.lock:  # one server for everybody
            self.url = self.url or await self.stack.enter_async_context(served(self.memory))
        async with Client(self.url, auth=f"token-of-{actor.id}") as client:
            system = f"BASE\n\n{await told(client)}"
            offered = {tool.name: tool.input_schema for tool in await client.list_tools()}
            said = 0
            while not isinstance(step := await self._say(message, said, system, offered), str):
                for call in step:
                    _, self.scripts.seen[message].results[call.id] = await called(client, call.name, **call.arguments)
                said += 1
        return step

    async def _say(self, message: str, said: int, system: str, tools: dict[str, Any]) -> Step:
        return await self.scripts.say(message, said=said, system=system, tools=tools)


class TestMCP(AdapterBehaviour):
    framework = "MCP"
    install = "mcp"
    seam = seam(
        once="no: MCP knows no run",
        identical="no: the host decides what it reads",
        place="no: the host decides where",
        told="yes, in the next read",
        origin="no: the actor only",
        people="yes, a token each",
        absent="yes, where the provider is read-only",
        approval="no: MCP knows no run",
        another="no: MCP knows no run",
        killed="no: MCP knows no run",
        reading="yes, an error of the read",
        writing="no: an error of the call",
        goes_on="no: the host decides",
    )

    @pytest.fixture(autouse=True)
    async def _serving(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as self.stack:
            yield

    def desk(self, memory: Memory, scripts: Scripts, *, on_error: Any = "fail") -> Host:
        return Host(memory, scripts, self.stack)


async def test_no_schema_says_for_whom_a_call_is():
    async with client_of() as client:
        tools = {tool.name: tool for tool in await client.list_tools()}

    assert set(tools) == {"remember", "list_memories", "forget"}
    assert set(tools["remember"].input_schema["properties"]) == {"key", "fact"}
    assert set(tools["forget"].input_schema["properties"]) == {"id"}
    assert not tools["list_memories"].input_schema.get("properties")
    assert tools["forget"].annotations.destructive_hint and tools["list_memories"].annotations.read_only_hint


async def test_what_is_remembered_is_told_listed_and_in_the_block():
    async with client_of() as client:
        assert "by rail" not in await told(client)

        ok, message = await called(client, "remember", key="carrier", fact="by rail")

        assert ok and message == "Recorded [actor:ana] carrier: by rail. It replaced nothing."
        assert "[actor:ana] carrier: by rail" in block_of(await told(client))
        _, listed = await called(client, "list_memories")
        assert {entry["key"] for entry in json.loads(listed)} == {"carrier", "lunch", "units"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"key": "units", "fact": "miles", "scope": "tenant:acme"}, "`scope`"),
        ({"key": "units"}, "needs a fact"),
        ({"key": 7, "fact": "x"}, "must be a string"),
        ({"key": "k", "fact": "x" * 241}, "241 characters"),
    ],
)
async def test_a_call_that_asks_for_more_or_less_is_refused_in_words(arguments: Any, says: str):
    async with client_of() as client:
        ok, message = await called(client, "remember", **arguments)

        assert not ok and says in message
        _, listed = await called(client, "list_memories")
        assert len(json.loads(listed)) == 2


async def test_a_person_s_statement_is_not_replaced_and_the_model_learns_which_stands():
    provider = InMemoryMemoryProvider(records=[fact("units", "kilometres", author="human")])
    async with client_of(provider) as client:
        ok, message = await called(client, "remember", key="units", fact="miles")

    assert not ok and "kilometres" in message


async def test_only_one_s_own_fact_is_forgotten_and_another_s_does_not_exist():
    async with client_of() as client:
        assert await called(client, "forget", id="mem_ana") == (True, "Forgotten.")
        wider = await called(client, "forget", id="mem_acme")
        others = await called(client, "forget", id="mem_bo")
        nobodys = await called(client, "forget", id="mem_never")

    assert not wider[0] and "administers" in wider[1]
    assert others == nobodys and not others[0]


async def test_a_read_only_memory_offers_no_remember():
    provider = InMemoryMemoryProvider()
    provider.write = None
    async with client_of(provider) as client:
        assert {tool.name for tool in await client.list_tools()} == {"list_memories", "forget"}


async def test_a_provider_that_fails_is_an_error_and_no_empty_memory():
    async with client_of(BrokenProvider()) as client:
        for name, arguments in (("list_memories", {}), ("remember", {"key": "a", "fact": "b"})):
            with pytest.raises(ToolError, match="the database is gone"):
                await client.call_tool(name, arguments)
        with pytest.raises(Exception, match="the database is gone"):
            await told(client)


def a_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@asynccontextmanager
async def listening(server: FastMCP) -> AsyncIterator[str]:
    """A server on a loopback port."""
    port = a_port()
    app = server.http_app(stateless_http=True)
    http = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error"))
    task = asyncio.create_task(http.serve())
    try:
        await _answers(port)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        http.should_exit = True
        await task


@asynccontextmanager
async def served(memory: Memory) -> AsyncIterator[str]:
    """The server on a loopback port, whose tokens name their person."""
    tokens = {
        f"token-of-{actor.id}": {"client_id": "host", "sub": actor.id, "tenant": actor.tenant_ref}
        for actor in (ANA, BO)
    }
    tokens["token-of-a-program"] = {"client_id": "cron"}
    server = memory_server(memory, actor=token_actor(tenant_claim="tenant"), auth=StaticTokenVerifier(tokens=tokens))
    async with listening(server) as url:
        yield url


async def status(url: str, token: str | None) -> int:
    """What the server answers to a request, before any MCP."""
    headers = {"Accept": "application/json, text/event-stream"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    async with httpx.AsyncClient() as client:
        return (await client.post(url, json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=headers)).status_code


async def _answers(port: int) -> None:
    for _ in range(1200):  # a minute, for a machine that is busy
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return
    pytest.fail("the server did not start")


async def test_two_people_at_once_over_http_see_and_write_their_own_only():
    # given one server and two tokens
    memory = Memory(InMemoryMemoryProvider(records=RECORDS))
    async with served(memory) as url:

        async def use(name: str) -> str:
            async with Client(url, auth=f"token-of-{name}") as client:
                await called(client, "remember", key="desk", fact=f"of {name}")
                return await told(client)

        # when both use it at once
        anas, bos = await asyncio.gather(use("ana"), use("bo"))

    # then each block holds what is theirs and what is everybody's
    assert "lentils" in anas and "of ana" in anas and "tofu" not in anas and "of bo" not in anas
    assert "tofu" in bos and "of bo" in bos and "lentils" not in bos and "of ana" not in bos
    assert "kilometres" in anas and "kilometres" in bos


async def test_over_http_nobody_gets_in_without_a_token_and_a_program_is_no_person():
    async with served(Memory(InMemoryMemoryProvider(records=RECORDS))) as url:
        assert await status(url, None) == await status(url, "token-of-nobody") == 401
        async with Client(url, auth="token-of-a-program") as client:
            ok, message = await called(client, "list_memories")

    assert not ok and "Nobody is signed in" in message


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "onfile.cli", *arguments]


async def test_the_command_serves_one_person_over_standard_input_and_output(tmp_path: Path):
    # given the command as a host would start it
    program, *arguments = command("mcp", "--actor", "ana", "--db", str(tmp_path / "facts.db"))
    transport = StdioTransport(program, arguments)

    # when a real client uses it
    async with Client(transport) as client:
        ok, message = await called(client, "remember", key="carrier", fact="by rail")
        block = await told(client)

    # then the fact is on file at that person's scope
    assert ok and "[actor:ana] carrier: by rail" in message
    assert "[actor:ana] carrier: by rail" in block


@asynccontextmanager
async def started(*arguments: str, **environment: str) -> AsyncIterator[str]:
    port = a_port()
    process = subprocess.Popen(
        command("mcp", "--http", "--port", str(port), *arguments),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **environment},
    )
    try:
        await _answers(port)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(20)


async def test_the_command_serves_one_person_over_http_behind_a_bearer(tmp_path: Path):
    database = str(tmp_path / "facts.db")
    async with started("--actor", "ana", "--tenant", "acme", "--db", database, ONFILE_MCP_TOKEN="secret") as url:
        async with Client(url, auth="secret") as client:
            ok, message = await called(client, "remember", key="carrier", fact="by rail")
        assert await status(url, "wrong") == 401

    assert ok and "[actor:ana]" in message


async def test_the_command_serves_everybody_whose_token_the_key_verifies(tmp_path: Path):
    # given a key pair, and tokens for two people, one for another service and one of another's making
    pair, stranger = RSAKeyPair.generate(), RSAKeyPair.generate()
    key = tmp_path / "key.pem"
    key.write_text(pair.public_key)

    def token(subject: str, *, audience: str = "onfile", by: Any = pair) -> str:
        return by.create_token(subject=subject, audience=audience, additional_claims={"org": "acme"})

    arguments = ["--jwt-key", str(key), "--audience", "onfile", "--tenant-claim", "org"]
    async with started(*arguments, "--db", str(tmp_path / "facts.db")) as url:
        # when each writes
        for name in ("ana", "bo"):
            async with Client(url, auth=token(name)) as client:
                assert "Recorded [actor:" + name in (await called(client, "remember", key="desk", fact=name))[1]

        # then each reads their own, and the others do not get in
        async with Client(url, auth=token("ana")) as client:
            listed = json.loads((await called(client, "list_memories"))[1])
            assert [(entry["scope"], entry["text"]) for entry in listed] == [("actor:ana", "ana")]
        for bad in (token("ana", audience="payroll"), token("ana", by=stranger)):
            assert await status(url, bad) == 401


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "say for whom it serves"),
        (["--actor", "ana", "--http", "--jwks", "http://127.0.0.1/keys"], "say for whom it serves"),
        (["--jwks", "http://127.0.0.1/keys"], "add --http"),
        (["--http", "--jwks", "http://127.0.0.1/keys"], "--audience"),
    ],
)
def test_the_command_says_in_a_sentence_what_it_needs(arguments: list[str], says: str):
    done = subprocess.run(command("mcp", *arguments), capture_output=True, text=True, check=False, timeout=60)

    assert done.returncode == 2
    assert says in done.stderr and done.stderr.count("\n") == 1
