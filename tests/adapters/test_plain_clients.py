"""The plain OpenAI and Anthropic clients, in the loops of the examples, keep what every adapter must."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

from .installed import needs

needs("openai", "anthropic")

from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from onfile import Actor, Memory, ScopeContext

from .behaviour import AdapterBehaviour, seam
from .fake_api import FakeAPI, fake_api, system_of
from .scripts import Scripts, Step

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


class ScriptedAPI(FakeAPI):
    """The stand-in for the HTTP API says a script's lines, and notes what it is told."""

    def __init__(self, scripts: Scripts) -> None:
        super().__init__()
        self.scripts = scripts
        self.loop: asyncio.AbstractEventLoop | None = None

    def step(self, sent: dict[str, Any]) -> Step:
        messages = [told for told in sent["messages"] if told["role"] not in {"system", "developer"}]
        message = messages[0]["content"]
        for told in messages:
            for call, result in _results(told):
                self.scripts.seen[message].results[call] = result
        said = self.scripts.say(
            message,
            said=sum(told["role"] == "assistant" for told in messages),
            system=system_of(sent),
            tools=dict(map(_tool, sent.get("tools") or [])),
        )
        assert self.loop
        return asyncio.run_coroutine_threadsafe(said, self.loop).result(20)


def _results(told: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if told["role"] == "tool":
        yield told["tool_call_id"], told["content"]
    content = told.get("content")
    for part in content if isinstance(content, list) else ():
        if part["type"] == "tool_result":
            yield part["tool_use_id"], part["content"]


def _tool(offered: dict[str, Any]) -> tuple[str, Any]:
    told = offered.get("function", offered)
    return told["name"], told.get("parameters") or told["input_schema"]


def example(name: str) -> ModuleType:
    """The example as it stands, but for its last line, which would run it."""
    module = ModuleType(name)
    source = (EXAMPLES / f"{name}.py").read_text("utf-8")
    assert source.endswith("\n\nasyncio.run(main())\n")
    exec(compile(source.removesuffix("asyncio.run(main())\n"), f"{name}.py", "exec"), vars(module))  # noqa: S102  # our own example
    module.BASE = "BASE"
    return module


class PlainDesk:
    def __init__(self, name: str, memory: Memory, scripts: Scripts) -> None:
        self.example = example(name)
        self.memory = memory
        self.api = ScriptedAPI(scripts)

    @contextmanager
    def served(self) -> Iterator[Any]:
        self.api.loop = asyncio.get_running_loop()
        with fake_api(self.api):
            if hasattr(self.example, "AsyncOpenAI"):
                yield AsyncOpenAI(base_url=f"{self.api.url}/v1", api_key="none")
            else:
                yield AsyncAnthropic(base_url=self.api.url, api_key="none")

    async def turn(self, actor: Actor, message: str, *, thread: str = "t1") -> str:
        with self.served() as client:
            async with client:
                ctx = ScopeContext(actor=actor, thread_id=thread)
                return await self.example.turn(client, self.memory, ctx, message)


class PlainClient(AdapterBehaviour):
    framework = "plain OpenAI, Anthropic"
    install = ""
    name: ClassVar[str]
    seam = seam(
        place="yes, your loop",
        approval="no: yours to keep, with `dump_digest`",
        another="no: `actor` is yours",
        killed="no: that is what the runner of `onfile[runs]` is for",
        goes_on="no: the exception is yours to catch",
    )

    def desk(self, memory: Memory, scripts: Scripts, *, on_error: Any = "fail") -> PlainDesk:
        return PlainDesk(self.name, memory, scripts)


class TestOpenAI(PlainClient):
    name = "openai_client"


class TestAnthropic(PlainClient):
    name = "anthropic_client"
