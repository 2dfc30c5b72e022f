"""Pydantic AI keeps what every adapter must, on the real package and its own function model."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from .installed import needs

needs("pydantic_ai")

from pydantic_ai import Agent, BinaryContent, DeferredToolRequests, DeferredToolResults, ModelMessagesTypeAdapter
from pydantic_ai.capabilities import Capability
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from onfile import Actor, Memory, ScopeContext
from onfile.adapters.pydantic_ai import MemoryCapability, SkillsCapability
from onfile.skills import CodeSkills, skill
from onfile.testing import InMemoryMemoryProvider
from tests.facts import fact

from .behaviour import ANA, AdapterBehaviour, holds, seam
from .scripts import Call, Scripts, ship


@dataclass
class Deps:
    actor: Actor


def model_of(scripts: Scripts) -> FunctionModel:
    """A model that says a script's lines and notes what it is told."""

    async def answer(messages: list[Any], info: AgentInfo) -> ModelResponse:
        message = next(
            part.content for told in reversed(messages) for part in told.parts if part.part_kind == "user-prompt"
        )
        start = max(
            place for place, told in enumerate(messages) if any(part.part_kind == "user-prompt" for part in told.parts)
        )
        seen = scripts.seen[message]
        for told in messages[start:]:
            for part in told.parts:
                if part.part_kind in {"tool-return", "retry-prompt"}:
                    seen.results[part.tool_call_id] = part.content
        step = await scripts.say(
            message,
            said=sum(isinstance(told, ModelResponse) for told in messages[start:]),
            system="\n\n".join(part.content for part in info.model_request_parameters.instruction_parts or []),
            tools={tool.name: tool.parameters_json_schema for tool in info.function_tools},
        )
        if isinstance(step, str):
            return ModelResponse(parts=[TextPart(step)])
        return ModelResponse(parts=[ToolCallPart(call.name, call.arguments, call.id) for call in step])

    return FunctionModel(answer)


@skill(name="label-a-pallet", description="how a pallet is labelled")
def label_a_pallet() -> str:
    return "two labels, on the short sides"


@skill(name="close-the-books", description="how Bo closes the books", scope="actor:bo")
def close_the_books() -> str:
    return "for Bo alone"


class PydanticAIDesk:
    def __init__(self, memory: Memory, scripts: Scripts, on_error: Any) -> None:
        capability = MemoryCapability(memory, actor=lambda ctx: ctx.deps.actor, on_error=on_error)
        self.agent = Agent(
            model_of(scripts),
            instructions="BASE",
            deps_type=Deps,
            output_type=[str, DeferredToolRequests],
            capabilities=[capability],
        )

        @self.agent.tool_plain(requires_approval=True)
        def ship() -> str:
            """Ship it."""
            return "shipped"

    async def turn(self, actor: Actor, message: str, *, thread: str = "t1") -> str:
        return (await self.agent.run(message, deps=Deps(actor), conversation_id=thread)).output

    async def until_approval(self, actor: Actor, message: str) -> bytes:
        result = await self.agent.run(message, deps=Deps(actor))
        assert isinstance(result.output, DeferredToolRequests)
        return result.all_messages_json()

    async def approve(self, kept: bytes, actor: Actor) -> str:
        history = ModelMessagesTypeAdapter.validate_json(kept)
        results = DeferredToolResults(approvals={"c9": True})
        resumed = await self.agent.run(message_history=history, deferred_tool_results=results, deps=Deps(actor))
        assert b"onfile_memory" not in resumed.all_messages_json(), "nothing waits, so nothing needs the digest"
        return resumed.output


class TestPydanticAI(AdapterBehaviour):
    framework = "Pydantic AI"
    install = "pydantic-ai"
    seam = seam(
        place="yes, in the order of `capabilities`",
        approval="yes, from the message history",
        killed="yes, under DBOS",
    )

    def desk(self, memory: Memory, scripts: Scripts, *, on_error: Any = "fail") -> PydanticAIDesk:
        return PydanticAIDesk(memory, scripts, on_error)


@holds("place")
async def test_the_block_stands_after_contributors_and_before_retrieval_and_skills():
    # given capabilities in the order that the docs say, and a contributor of the host's
    scripts = Scripts()
    seen = scripts.add("hi", "done")
    memory = MemoryCapability(Memory(InMemoryMemoryProvider(records=[fact()])), actor=lambda ctx: ANA)
    retrieval: Any = Capability(instructions=lambda: "RETRIEVED")
    skills = SkillsCapability([CodeSkills(label_a_pallet)], actor=lambda ctx: ANA)
    agent = Agent(model_of(scripts), instructions="BASE", capabilities=[memory, retrieval, skills])

    @agent.instructions
    def contributor() -> str:
        return "CONTRIBUTED"

    # when a turn runs
    await agent.run("hi")

    # then the five parts stand in their order
    parts = [part.partition("\n")[0] for part in re.split(r"\n\n(?=[A-Z<])", seen.systems[0])]
    assert parts == ["BASE", "CONTRIBUTED", "<memory>", "RETRIEVED", "<skills>"]


async def test_skills_stand_behind_memory_also_where_the_host_lists_them_first():
    scripts = Scripts()
    seen = scripts.add("hi", "done")
    memory = MemoryCapability(Memory(InMemoryMemoryProvider(records=[fact()])), actor=lambda ctx: ANA)
    skills = SkillsCapability([CodeSkills(label_a_pallet)], actor=lambda ctx: ANA)

    await Agent(model_of(scripts), capabilities=[skills, memory]).run("hi")

    assert seen.systems[0].startswith("<memory>") and seen.systems[0].endswith("</skills>")


async def test_a_turn_of_several_parts_is_searched_by_its_text_alone():
    # given a provider that searches, and a message of text and a file
    provider = InMemoryMemoryProvider(
        recall=True, records=[fact("pallet labels", "two per pallet"), fact("lunch", "lentils", minutes=1)]
    )
    told: list[str] = []

    async def answer(messages: list[Any], info: AgentInfo) -> ModelResponse:
        told.append(info.instructions or "")
        return ModelResponse(parts=[TextPart("done")])

    memory = Memory(provider, max_memories=1)
    agent = Agent(FunctionModel(answer), capabilities=[MemoryCapability(memory, actor=lambda ctx: ANA)])

    # when it is sent
    await agent.run(["how do we label a pallet?", BinaryContent(b"lunch", media_type="text/plain")])

    # then what the user wrote decided
    assert "two per pallet" in told[0] and "lentils" not in told[0]


async def test_a_streamed_turn_has_memory_as_well():
    async def stream(messages: list[Any], info: AgentInfo) -> AsyncIterator[str]:
        yield str(info.instructions)

    memory = Memory(InMemoryMemoryProvider(records=[fact()]))
    capability = MemoryCapability(memory, actor=lambda ctx: ANA)
    agent = Agent(FunctionModel(stream_function=stream), capabilities=[capability])

    async with agent.run_stream("hi") as result:
        assert "units: kilometres" in await result.get_output()


async def test_a_shared_thread_is_named_by_the_host_s_own_context():
    scripts = Scripts()
    seen = scripts.add("hi", "done")
    memory = Memory(InMemoryMemoryProvider(records=[fact(), fact("hours", "9 to 5", scope="tenant:acme")]))
    shared = ScopeContext(actor=ANA, thread_id="room", shared=True)
    agent = Agent(model_of(scripts), capabilities=[MemoryCapability(memory, actor=lambda ctx: shared)])

    await agent.run("hi")

    assert "9 to 5" in seen.systems[0] and "kilometres" not in seen.systems[0]
    assert not seen.offered[0]


async def test_nobody_signed_in_is_an_error_before_any_model_is_asked():
    scripts = Scripts()
    seen = scripts.add("hi", "done")
    memory = Memory(InMemoryMemoryProvider())
    agent = Agent(model_of(scripts), capabilities=[MemoryCapability(memory, actor=lambda ctx: None)])

    with pytest.raises(TypeError, match="must answer an"):
        await agent.run("hi")

    assert not seen.systems


def read_skill(name: str, id: str = "c1") -> Call:
    return Call(name="skill", arguments={"name": name}, id=id)


async def test_a_model_reads_the_skills_of_its_run_s_catalogue_and_no_others():
    # given a skill of everybody's and one of somebody else's
    scripts = Scripts()
    asked = [
        read_skill("Label a pallet"),
        read_skill("close-the-books", "c2"),
        Call(name="skill", arguments={}, id="c3"),
    ]
    seen = scripts.add("label a pallet", asked, "done")
    skills = SkillsCapability([CodeSkills(label_a_pallet, close_the_books)], actor=lambda ctx: ANA)

    # when a run asks for both, and for none by name
    await Agent(model_of(scripts), capabilities=[skills]).run("label a pallet")

    # then it is answered the one on offer, and told in words what is
    assert "label-a-pallet: how a pallet is labelled" in seen.systems[0] and "close" not in seen.systems[0]
    assert seen.results["c1"] == "two labels, on the short sides"
    assert seen.results["c2"] == seen.results["c3"]
    assert seen.results["c2"] == "There is no such skill on offer in this run. On offer: label-a-pallet."


async def test_a_run_with_no_skill_on_offer_has_no_tool_for_it():
    scripts = Scripts()
    seen = scripts.add("hi", "done")
    skills = SkillsCapability([CodeSkills(close_the_books)], actor=lambda ctx: ANA)

    await Agent(model_of(scripts), capabilities=[skills]).run("hi")

    assert seen.systems[0] == "" and not seen.offered[0]


async def test_a_run_resumed_after_an_approval_has_the_catalogue_it_began_with():
    # given a run that waits for a person
    scripts = Scripts()
    seen = scripts.add("ship it", [ship()], [read_skill("close-the-books", "c2")], "shipped")

    def agent(*skills: Any) -> Agent[Any, Any]:
        made = Agent(
            model_of(scripts),
            deps_type=Deps,
            output_type=[str, DeferredToolRequests],
            capabilities=[SkillsCapability([CodeSkills(*skills)], actor=lambda ctx: ctx.deps.actor)],
        )

        @made.tool_plain(name="ship", requires_approval=True)
        def ship_it() -> str:
            """Ship it."""
            return "shipped"

        return made

    bo = Deps(Actor(id="bo", tenant_ref="acme"))
    kept = (await agent(close_the_books).run("ship it", deps=bo)).all_messages_json()

    # when it is approved after its skill was withdrawn and another one published
    history = ModelMessagesTypeAdapter.validate_json(kept)
    approved = DeferredToolResults(approvals={"c9": True})
    resumed = await agent(label_a_pallet).run(message_history=history, deferred_tool_results=approved, deps=bo)

    # then the menu is the one that it began with, and what is gone is told
    assert resumed.output == "shipped"
    assert seen.systems[0] == seen.systems[1] and "close-the-books" in seen.systems[1]
    assert seen.results["c2"] == "The skill close-the-books was withdrawn since; do without it."
    assert b"onfile_skills" not in resumed.all_messages_json()

    # and nobody else can take it up
    with pytest.raises(Exception, match="started for another actor"):
        history = ModelMessagesTypeAdapter.validate_json(kept)
        await agent().run(message_history=history, deferred_tool_results=approved, deps=Deps(ANA))


@holds("killed")
@pytest.mark.skipif(find_spec("dbos") is None and os.environ.get("CI") != "true", reason="DBOS is not installed here")
def test_a_run_killed_in_its_second_model_call_recovers_with_the_same_bytes_under_dbos(tmp_path: Path, project: Path):
    def process(act: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tests.adapters.durable_turn", str(tmp_path), act],
            cwd=project,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    # given a durable run whose process dies in the second model call, after it remembered
    assert process("start").returncode == 9

    # when another process recovers it, and the store answers something else by now
    recovered = process("recover")
    assert recovered.returncode == 0, recovered.stderr
    told = json.loads(recovered.stdout)

    # then nobody was asked again, nothing was written again, and the model read the same bytes each time
    assert (told["output"], told["asked"], told["written"]) == ("done as it was on start", 0, 0)
    assert told["steps"] == [
        "support__capability__onfile_memory.digest",
        "support__capability__onfile_skills.catalog",
        "support__model.request",
        "support__capability__onfile_memory.remember",
        "support__capability__onfile_skills.skill",
        "support__model.request",
    ]
    systems = {*map(json.loads, (tmp_path / "told.jsonl").read_text().splitlines())}
    (system,) = systems
    assert "units: kilometres" in system and "label-a-pallet" in system


async def test_over_ag_ui_a_tool_of_the_front_end_is_answered_in_a_run_with_a_digest_of_its_own():
    # given an agent behind AG-UI, and a model that calls a tool of the browser's
    needs("ag_ui", "starlette")
    import httpx
    from pydantic_ai.models.function import DeltaToolCall
    from pydantic_ai.ui.ag_ui import AGUIAdapter
    from starlette.applications import Starlette
    from starlette.routing import Route

    blocks: list[str] = []

    async def stream(messages: list[Any], info: AgentInfo) -> AsyncIterator[Any]:
        blocks.append(info.instructions or "")
        answered = any(part.part_kind == "tool-return" for told in messages for part in told.parts)
        yield "done" if answered else {0: DeltaToolCall(name="pick", json_args="{}", tool_call_id="c1")}

    memory = Memory(InMemoryMemoryProvider())
    capability = MemoryCapability(memory, actor=lambda ctx: ANA)
    agent = Agent(FunctionModel(stream_function=stream), capabilities=[capability])

    async def chat(request: Any) -> Any:
        return await AGUIAdapter.dispatch_request(request, agent=agent)

    tool = {"name": "pick", "description": "Pick one.", "parameters": {"type": "object", "properties": {}}}
    sent = {"threadId": "t1", "runId": "r1", "state": {}, "tools": [tool], "context": [], "forwardedProps": {}}
    said = {"id": "m1", "role": "user", "content": "hi"}
    call = {"id": "c1", "type": "function", "function": {"name": "pick", "arguments": "{}"}}
    answer = [
        {"id": "m2", "role": "assistant", "toolCalls": [call]},
        {"id": "m3", "role": "tool", "toolCallId": "c1", "content": "red"},
    ]
    transport = httpx.ASGITransport(Starlette(routes=[Route("/chat", chat, methods=["POST"])]))
    async with httpx.AsyncClient(transport=transport, base_url="http://host") as browser:
        # when the browser answers, and a fact was recorded in between
        await browser.post("/chat", json={**sent, "messages": [said]})
        await memory.publish(scope="actor:ana", key="units", text="miles", ctx=ScopeContext(actor=ANA))
        done = await browser.post("/chat", json={**sent, "messages": [said, *answer]})

    # then its answer is a run that sees it
    assert "done" in done.text
    assert "miles" not in blocks[0] and "miles" in blocks[1]


def test_a_provider_or_an_actor_in_the_wrong_place_is_refused_where_the_capability_is_built():
    memory = Memory(InMemoryMemoryProvider())

    with pytest.raises(TypeError, match=r"not InMemoryMemoryProvider; .*Memory\(provider\)"):
        MemoryCapability(memory.provider, actor=lambda ctx: ctx.deps.actor)
    with pytest.raises(TypeError, match=r"takes a callable, .* not Actor"):
        MemoryCapability(memory, actor=ANA)
