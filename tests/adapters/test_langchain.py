"""LangChain keeps what every adapter must, on the real agent with a checkpointer and a scripted chat model."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .installed import needs

needs("langchain", "langgraph", "langgraph.checkpoint.sqlite")

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from onfile import Actor, Memory
from onfile.adapters.langchain import MemoryMiddleware
from onfile.blocking import Blocking
from onfile.testing import InMemoryMemoryProvider
from tests.facts import fact

from .behaviour import ANA, AdapterBehaviour, holds, seam
from .scripts import Scripts, remember
from .scripts import ship as ship_call


@dataclass
class Context:
    actor: Actor


class ScriptedChat(BaseChatModel):
    """A chat model that says a script's lines and notes what it is told."""

    scripts: Any
    bound: Any = ()

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> ScriptedChat:
        return self.model_copy(update={"bound": tuple(tools)})

    def _told(self, messages: list[Any]) -> dict[str, Any]:
        start = max(place for place, told in enumerate(messages) if isinstance(told, HumanMessage))
        message = messages[start].text
        for told in messages[start:]:
            if isinstance(told, ToolMessage):
                self.scripts.seen[message].results[told.tool_call_id] = told.text
        described = [convert_to_openai_tool(tool)["function"] for tool in self.bound]
        return {
            "message": message,
            "said": sum(isinstance(told, AIMessage) for told in messages[start:]),
            "system": "".join(told.text for told in messages if isinstance(told, SystemMessage)),
            "tools": {function["name"]: function["parameters"] for function in described},
        }

    def _generate(self, messages: list[Any], *args: Any, **kwargs: Any) -> ChatResult:
        return _result(self.scripts.say_at_once(**self._told(messages)))

    async def _agenerate(self, messages: list[Any], *args: Any, **kwargs: Any) -> ChatResult:
        return _result(await self.scripts.say(**self._told(messages)))


def _result(step: Any) -> ChatResult:
    if isinstance(step, str):
        said = AIMessage(content=step)
    else:
        calls = [{"name": call.name, "args": call.arguments, "id": call.id, "type": "tool_call"} for call in step]
        said = AIMessage(content="", tool_calls=calls)
    return ChatResult(generations=[ChatGeneration(message=said)])


@tool
def ship() -> str:
    """Ship it."""
    return "shipped"


class LangChainDesk:
    def __init__(
        self, memory: Any, scripts: Scripts, on_error: Any = "fail", folder: Any = None, saver: Any = None
    ) -> None:
        self.folder = folder
        self.on = lambda saver: LangChainDesk(memory, scripts, on_error, folder, saver)
        self.agent = create_agent(
            ScriptedChat(scripts=scripts),
            [ship],
            system_prompt="BASE",
            middleware=[
                MemoryMiddleware(memory, actor=lambda runtime: runtime.context.actor, on_error=on_error),
                HumanInTheLoopMiddleware(interrupt_on={"ship": True}),
            ],
            context_schema=Context,
            checkpointer=saver or InMemorySaver(),
        )

    async def go(self, sent: Any, actor: Actor, thread: str) -> Any:
        config = {"configurable": {"thread_id": thread}}
        return await self.agent.ainvoke(sent, config, context=Context(actor), durability="sync")

    async def turn(self, actor: Actor, message: str, *, thread: str = "t1") -> str:
        done = await self.go({"messages": [HumanMessage(message)]}, actor, thread)
        assert "onfile_memory" not in done
        return done["messages"][-1].text

    async def until_approval(self, actor: Actor, message: str) -> str:
        file = str(self.folder / "checkpoints.db")
        async with AsyncSqliteSaver.from_conn_string(file) as saver:
            waiting = await self.on(saver).go({"messages": [HumanMessage(message)]}, actor, "t1")
            assert waiting["__interrupt__"]
        return file

    async def approve(self, kept: str, actor: Actor) -> str:
        async with AsyncSqliteSaver.from_conn_string(kept) as saver:
            resumed = await self.on(saver).go(Command(resume={"decisions": [{"type": "approve"}]}), actor, "t1")
        return resumed["messages"][-1].text


class TestLangChain(AdapterBehaviour):
    framework = "LangChain, LangGraph"
    install = "langchain"
    seam = seam(
        place="yes, in the order of `middleware`",
        approval="yes, from the checkpoint",
        killed="yes, from the checkpoint",
    )

    def desk(self, memory: Memory, scripts: Scripts, *, on_error: Any = "fail") -> LangChainDesk:
        return LangChainDesk(memory, scripts, on_error, folder=self.folder)


def test_without_an_event_loop_the_blocking_door_serves_the_same_middleware():
    # given an agent that is invoked, not awaited
    scripts = Scripts()
    seen = scripts.add("hi", [remember("carrier", "by rail")], "done")
    with Blocking(Memory(InMemoryMemoryProvider(records=[fact()]))) as memory:
        agent = LangChainDesk(memory, scripts).agent
        config: Any = {"configurable": {"thread_id": "t1"}}

        # when it runs a turn
        done = agent.invoke({"messages": [HumanMessage("hi")]}, config, context=Context(ANA))

        # then it had memory like any other
        assert done["messages"][-1].text == "done"
        assert seen.systems[0] == seen.systems[1] and "units: kilometres" in seen.systems[0]
        assert seen.results["c1"].startswith("Recorded [actor:ana] carrier: by rail")


def test_an_awaited_memory_says_what_to_do_where_nothing_is_awaited():
    scripts = Scripts()
    scripts.add("hi", "done")
    agent = LangChainDesk(Memory(InMemoryMemoryProvider()), scripts).agent

    with pytest.raises(TypeError, match="use ainvoke, or give MemoryMiddleware"):
        agent.invoke({"messages": [HumanMessage("hi")]}, {"configurable": {"thread_id": "t1"}}, context=Context(ANA))


async def test_the_next_turn_of_a_thread_has_a_digest_of_its_own():
    scripts = Scripts()
    first = scripts.add("we ship by rail", [remember("carrier", "by rail")], "noted")
    second = scripts.add("how?", "by rail")
    desk = LangChainDesk(Memory(InMemoryMemoryProvider()), scripts)

    await desk.turn(ANA, "we ship by rail")
    await desk.turn(ANA, "how?")

    assert "by rail" not in first.systems[1]
    assert "[actor:ana] carrier: by rail" in second.systems[0]


@holds("place")
async def test_what_later_middleware_adds_stands_behind_the_block():
    # given middleware of the host's behind memory, as the docs say
    class Retrieval(AgentMiddleware):
        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            blocks = [*request.system_message.content_blocks, {"type": "text", "text": "RETRIEVED"}]
            return await handler(request.override(system_message=SystemMessage(content=blocks)))

    scripts = Scripts()
    seen = scripts.add("hi", "done")
    memory = MemoryMiddleware(Memory(InMemoryMemoryProvider(records=[fact()])), actor=lambda runtime: ANA)
    model = ScriptedChat(scripts=scripts)
    agent = create_agent(model, system_prompt="BASE", middleware=[memory, Retrieval()])

    # when a turn runs
    await agent.ainvoke({"messages": [HumanMessage("hi")]})

    # then the parts stand in their order
    assert seen.systems[0].startswith("BASE\n\n<memory>") and seen.systems[0].endswith("</memory>RETRIEVED")


async def test_the_host_s_own_system_blocks_keep_their_cache_marks():
    # given a system prompt of one block, marked for the provider's cache
    marked = {"type": "text", "text": "BASE", "cache_control": {"type": "ephemeral"}}
    told: list[Any] = []

    class Noting(ScriptedChat):
        def _told(self, messages: list[Any]) -> dict[str, Any]:
            told.append(messages[0].content)
            return super()._told(messages)

    scripts = Scripts()
    scripts.add("hi", "done")
    memory = MemoryMiddleware(Memory(InMemoryMemoryProvider(records=[fact()])), actor=lambda runtime: ANA)
    agent = create_agent(Noting(scripts=scripts), system_prompt=SystemMessage(content=[marked]), middleware=[memory])

    # when a turn runs
    await agent.ainvoke({"messages": [HumanMessage("hi")]})

    # then the mark stands where it stood, and the block is a block of its own behind it
    base, block = told[0]
    assert base == marked
    assert block["type"] == "text" and block["text"].strip().startswith("<memory>")


async def test_a_run_that_was_parked_before_the_agent_had_memory_finishes_without():
    # given a run of an agent without memory, which waits for a person
    scripts = Scripts()
    seen = scripts.add("ship it", [ship_call()], [remember("carrier", "by rail")], "shipped")
    saver, config = InMemorySaver(), {"configurable": {"thread_id": "t1"}}
    waits = HumanInTheLoopMiddleware(interrupt_on={"ship": True})
    model = ScriptedChat(scripts=scripts)
    bare = create_agent(model, [ship], middleware=[waits], context_schema=Context, checkpointer=saver)
    await bare.ainvoke({"messages": [HumanMessage("ship it")]}, config, context=Context(ANA), durability="sync")

    # when the host has given it memory by the time it is approved
    memory = Memory(InMemoryMemoryProvider(records=[fact()]))
    done = await LangChainDesk(memory, scripts, saver=saver).go(
        Command(resume={"decisions": [{"type": "approve"}]}), ANA, "t1"
    )

    # then it ends as it began, and a call that was never offered is told so
    assert done["messages"][-1].text == "shipped"
    assert "<memory>" not in "".join(seen.systems) and "remember" not in seen.offered[1]
    assert seen.results["c1"].startswith("Not recorded.")


@holds("killed")
def test_a_run_killed_in_its_second_model_call_goes_on_in_another_process_with_the_same_bytes(
    tmp_path: Path, project: Path
):
    def process(act: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tests.adapters.killed_turn", str(tmp_path), act],
            cwd=project,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    # given a process that dies in the second model call, after it remembered
    assert process("start").returncode == 9

    # when another one goes on from the checkpoint, on a store where a fact changed since
    done = process("recover")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)

    # then nobody was asked again, nothing was written again, and the model read the same bytes each time
    assert (told["output"], told["asked"], told["written"]) == ("done", 0, 0)
    systems = [json.loads(line) for line in (tmp_path / "told.jsonl").read_text("utf-8").splitlines()]
    assert len(systems) == 3 and len(set(systems)) == 1 and "units: kilometres" in systems[0]
