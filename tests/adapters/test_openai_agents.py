"""The OpenAI Agents SDK keeps what every adapter must, on the real runner and a scripted model."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

import pytest

from .installed import needs

needs("agents")

from agents import Agent, RunConfig, Runner, RunState, function_tool, set_tracing_disabled
from agents.items import ModelResponse
from agents.models.interface import Model
from agents.testing import ScriptedModel as OwnScriptedModel
from agents.testing import assistant_message, function_call
from agents.usage import Usage

from onfile import Actor, ListMemories, Memory, ScopeContext
from onfile.adapters.openai_agents import AgentsMemory, MemoryContext
from onfile.testing import InMemoryMemoryProvider
from tests.facts import fact

from .behaviour import ANA, AdapterBehaviour, holds, seam
from .scripts import Call, CountingProvider, Scripts, remember

set_tracing_disabled(True)


@dataclass(kw_only=True)
class Context(MemoryContext):
    actor: str
    thread: str | None = None


def ctx_of(context: Context) -> ScopeContext:
    return ScopeContext(actor=Actor(id=context.actor, tenant_ref="acme"), thread_id=context.thread)


class ScriptedModel(Model):
    """A model that says a script's lines and notes what it is told."""

    def __init__(self, scripts: Scripts) -> None:
        self.scripts = scripts

    async def get_response(
        self, system_instructions: Any, input: Any, model_settings: Any, tools: Any, *args, **kwargs
    ):
        items = [{"role": "user", "content": input}] if isinstance(input, str) else input
        start = max(place for place, item in enumerate(items) if item.get("role") == "user")
        message = items[start]["content"]
        for item in items[start:]:
            if item.get("type") == "function_call_output":
                self.scripts.seen[message].results[item["call_id"]] = item["output"]
        step = await self.scripts.say(
            message,
            said=len({item["id"] for item in items[start:] if item.get("type") == "function_call"}),
            system=system_instructions or "",
            tools={tool.name: tool.params_json_schema for tool in tools},
        )
        if isinstance(step, str):
            output = [assistant_message(step)]
        else:
            output = [function_call(call.name, call.arguments, call_id=call.id) for call in step]
            for call in output:
                call.id = f"step-{len(self.scripts.seen[message].systems)}"
        usage = Usage(requests=1)
        return ModelResponse(output=output, usage=usage, response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


@function_tool(needs_approval=True)
def ship() -> str:
    """Ship it."""
    return "shipped"


class AgentsDesk:
    def __init__(self, memory: Memory, scripts: Scripts, on_error: Any = "fail") -> None:
        self.memory = AgentsMemory(memory, actor=ctx_of, on_error=on_error)
        self.agent = Agent(
            name="desk", instructions="BASE", model=ScriptedModel(scripts), tools=[self.memory.tool, ship]
        )
        self.config = RunConfig(call_model_input_filter=self.memory.filter)

    async def turn(self, actor: Actor, message: str, *, thread: str = "t1") -> str:
        context = Context(actor=actor.id, thread=thread)
        return (await Runner.run(self.agent, message, context=context, run_config=self.config)).final_output

    async def until_approval(self, actor: Actor, message: str) -> str:
        result = await Runner.run(self.agent, message, context=Context(actor=actor.id), run_config=self.config)
        assert result.interruptions
        return result.to_state().to_string(context_serializer=asdict)

    async def approve(self, kept: str, actor: Actor) -> str:
        def read(data: Any) -> Context:
            return Context(**{**data, "actor": actor.id})

        state = await RunState.from_string(self.agent, kept, context_deserializer=read)
        for waiting in state.get_interruptions():
            state.approve(waiting)
        return (await Runner.run(self.agent, state, run_config=self.config)).final_output


class TestOpenAIAgents(AdapterBehaviour):
    framework = "OpenAI Agents"
    install = "openai-agents"
    seam = seam(
        identical="yes, handoffs included",
        place="yes, behind the instructions",
        people="yes, a context each",
        approval="yes, from `RunState`",
        killed="no engine of its own",
        writing="yes (the SDK may wrap the error)",
    )
    redacts = True

    def desk(self, memory: Memory, scripts: Scripts, *, on_error: Any = "fail") -> AgentsDesk:
        return AgentsDesk(memory, scripts, on_error)


async def test_a_context_that_serves_two_runs_gets_a_digest_of_its_own_for_each():
    # given a host that keeps one context for a conversation
    scripts = Scripts()
    scripts.add("we ship by rail", [remember("carrier", "by rail")], "noted")
    second = scripts.add("how?", "by rail")
    desk = AgentsDesk(Memory(InMemoryMemoryProvider()), scripts)
    context = Context(actor="ana")

    # when it runs two turns with it
    for message in ("we ship by rail", "how?"):
        await Runner.run(desk.agent, message, context=context, run_config=desk.config)

    # then the second one sees what the first recorded
    assert "[actor:ana] carrier: by rail" in second.systems[0]


async def test_a_dict_is_a_context_and_needs_no_serializer_of_the_host_s():
    scripts = Scripts()
    seen = scripts.add("ship it", [remember("carrier", "by rail"), Call(name="ship", arguments={}, id="c9")], "shipped")
    provider = CountingProvider(records=[fact()])
    memory = AgentsMemory(Memory(provider), actor=lambda context: Actor(id=context["actor"]))
    agent = Agent(name="desk", model=ScriptedModel(scripts), tools=[memory.tool, ship])
    config = RunConfig(call_model_input_filter=memory.filter)

    waiting = await Runner.run(agent, "ship it", context={"actor": "ana"}, run_config=config)
    state = await RunState.from_string(agent, waiting.to_state().to_string())
    state.approve(state.get_interruptions()[0])
    await Runner.run(agent, state, run_config=config)

    assert provider.asked == 1
    assert seen.systems[0] == seen.systems[1]


@holds("identical")
async def test_the_block_goes_along_when_one_agent_hands_over_to_another():
    # given an agent that hands over to one without the tool
    scripts = Scripts()
    memory = AgentsMemory(Memory(CountingProvider(records=[fact()])), actor=ctx_of)
    seen = scripts.add("hi", [Call(name="transfer_to_second", arguments={})], "done")
    second = Agent(name="second", instructions="SECOND", model=ScriptedModel(scripts))
    first = Agent(
        name="first", instructions="FIRST", model=ScriptedModel(scripts), tools=[memory.tool], handoffs=[second]
    )

    # when it does
    config = RunConfig(call_model_input_filter=memory.filter)
    await Runner.run(first, "hi", context=Context(actor="ana"), run_config=config)

    # then both read the same block, resolved once
    assert [system.partition("\n\n")[0] for system in seen.systems] == ["FIRST", "SECOND"]
    assert len({system.partition("\n\n")[2] for system in seen.systems}) == 1
    assert memory._turns.memory.provider.asked == 1


async def test_a_context_with_no_place_for_the_digest_is_told_what_to_do():
    scripts = Scripts()
    scripts.add("hi", "done")
    memory = AgentsMemory(Memory(InMemoryMemoryProvider()), actor=lambda context: ANA)
    agent = Agent(name="desk", model=ScriptedModel(scripts), tools=[memory.tool])

    with pytest.raises(TypeError, match="MemoryContext"):
        await Runner.run(agent, "hi", run_config=RunConfig(call_model_input_filter=memory.filter))


@pytest.mark.parametrize("sent", ["", "{", "[1]", '"units"', json.dumps({"key": 1, "fact": "x"})])
async def test_arguments_that_are_no_object_of_strings_are_refused_in_words(sent: str):
    scripts = Scripts()
    seen = scripts.add("hi", [Call(name="remember", arguments=sent)], "done")
    desk = AgentsDesk(Memory(InMemoryMemoryProvider()), scripts)

    assert await desk.turn(ANA, "hi") == "done"

    assert seen.results["c1"].startswith("Not recorded. ")


async def test_a_streamed_turn_has_memory_as_well():
    # given the SDK's own scripted model, which streams
    call = function_call("remember", {"key": "carrier", "fact": "by rail"}, call_id="c1")
    model = OwnScriptedModel([[call], [assistant_message("noted")]])
    provider = CountingProvider(records=[fact()])
    memory = AgentsMemory(Memory(provider), actor=ctx_of)
    agent = Agent(name="desk", instructions="BASE", model=model, tools=[memory.tool])

    # when a turn is streamed to its end
    config = RunConfig(call_model_input_filter=memory.filter)
    run = Runner.run_streamed(agent, "we ship by rail", context=Context(actor="ana"), run_config=config)
    events = [event async for event in run.stream_events()]

    # then both calls read the same block, and the fact was recorded
    assert events and run.final_output == "noted" and provider.asked == 1
    first, second = (told.system_instructions for told in model.calls)
    assert first == second and "units: kilometres" in first
    records = await provider.list(ListMemories(scopes=("actor:ana",), ctx=ScopeContext(actor=ANA)))
    assert {record.text for record in records} == {"kilometres", "by rail"}
