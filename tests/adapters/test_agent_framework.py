"""Microsoft Agent Framework keeps what every adapter must, on the real agent and a chat client of its own layers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .installed import needs

needs("agent_framework")

from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    ContextProvider,
    FunctionInvocationLayer,
    Message,
    tool,
)

from onfile import Actor, Memory, ScopeContext
from onfile.adapters.agent_framework import MemoryContextProvider
from onfile.testing import InMemoryMemoryProvider
from tests.facts import fact

from .behaviour import ANA, AdapterBehaviour, holds, seam
from .scripts import Call, CountingProvider, Scripts, remember, ship


class ScriptedClient(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """A chat client that says a script's lines and notes what it is told."""

    def __init__(self, scripts: Scripts) -> None:
        super().__init__()
        self.scripts = scripts

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **kwargs: Any) -> Any:
        if not stream:
            return self._said(messages, options)

        async def streamed() -> Any:
            (said,) = (await self._said(messages, options)).messages
            yield ChatResponseUpdate(role="assistant", contents=said.contents)

        return self._build_response_stream(streamed())

    async def _said(self, messages: list[Message], options: Any) -> ChatResponse[Any]:
        start = max(place for place, told in enumerate(messages) if told.role == "user" and told.text)
        message = messages[start].text
        for told in messages[start:]:
            for content in told.contents:
                if content.type == "function_result":
                    self.scripts.seen[message].results[content.call_id] = content.result
        step = await self.scripts.say(
            message,
            said=sum(told.role == "assistant" for told in messages[start:]),
            system=options.get("instructions") or "",
            tools={tool.name: tool.parameters() for tool in options.get("tools") or []},
        )
        if isinstance(step, str):
            return ChatResponse(messages=[Message("assistant", [step])])
        calls = [Content.from_function_call(call.id, call.name, arguments=call.arguments) for call in step]
        return ChatResponse(messages=[Message("assistant", calls)])


@tool(name="ship", approval_mode="always_require")
def ship_it() -> str:
    """Ship it."""
    return "shipped"


def actor_of(session: AgentSession) -> Actor:
    return Actor(**session.state["signed_in"])


def session_of(actor: Actor, thread: str) -> AgentSession:
    session = AgentSession(session_id=thread)
    session.state["signed_in"] = {"id": actor.id, "tenant_ref": actor.tenant_ref}
    return session


class AgentFrameworkDesk:
    def __init__(self, memory: Memory, scripts: Scripts, on_error: Any = "fail", *more: ContextProvider) -> None:
        provider = MemoryContextProvider(memory, actor=actor_of, on_error=on_error)
        self.agent = Agent(
            ScriptedClient(scripts), instructions="BASE", tools=[ship_it], context_providers=[provider, *more]
        )

    async def turn(self, actor: Actor, message: str, *, thread: str = "t1") -> str:
        session = session_of(actor, thread)
        answer = await self.agent.run(message, session=session)
        assert not session.state["onfile_memory"], "nothing waits, so nothing is kept"
        return answer.text

    async def until_approval(self, actor: Actor, message: str) -> str:
        session = session_of(actor, "t1")
        answer = await self.agent.run(message, session=session)
        assert answer.user_input_requests
        requests = [request.to_dict() for request in answer.user_input_requests]
        return json.dumps({"session": session.to_dict(), "requests": requests})

    async def approve(self, kept: str, actor: Actor) -> str:
        data = json.loads(kept)
        session = AgentSession.from_dict(data["session"])
        session.state["signed_in"] = {"id": actor.id, "tenant_ref": actor.tenant_ref}
        answers = [
            Content.from_dict(request).to_function_approval_response(approved=True) for request in data["requests"]
        ]
        answer = await self.agent.run(Message("user", answers), session=session)
        assert not session.state["onfile_memory"]
        return answer.text


class TestAgentFramework(AdapterBehaviour):
    framework = "Microsoft Agent Framework"
    install = "agent-framework"
    seam = seam(
        place="yes, in the order of `context_providers`",
        people="yes, a session each",
        approval="yes, from the session",
        killed="no engine of its own",
        writing="yes, as `MiddlewareFailure`",
    )

    def desk(self, memory: Memory, scripts: Scripts, *, on_error: Any = "fail") -> AgentFrameworkDesk:
        return AgentFrameworkDesk(memory, scripts, on_error)


@holds("place")
async def test_the_block_stands_in_front_of_what_later_providers_add():
    # given a provider of the host's behind memory, as the docs say
    class Retrieval(ContextProvider):
        async def before_run(self, *, agent: Any, session: Any, context: Any, state: Any) -> None:
            context.extend_instructions(self.source_id, "RETRIEVED")

    scripts = Scripts()
    seen = scripts.add("hi", "done")
    memory = Memory(InMemoryMemoryProvider(records=[fact()]))
    desk = AgentFrameworkDesk(memory, scripts, "fail", Retrieval("retrieval"))

    # when a turn runs
    await desk.turn(ANA, "hi")

    # then the parts stand in their order
    assert seen.systems[0].startswith("BASE\n\n<memory>")
    assert seen.systems[0].endswith("</memory>\nRETRIEVED")


async def test_a_session_s_next_run_has_a_digest_of_its_own_though_an_approval_was_never_answered():
    # given a session whose first run waits, and a fact that changed since
    scripts = Scripts()
    first = scripts.add("ship it", [ship()])
    later = scripts.add("how do we ship?", "by rail", "shipped")
    provider = CountingProvider(records=[fact("units", "kilometres")])
    memory = Memory(provider)
    desk = AgentFrameworkDesk(memory, scripts)
    session = session_of(ANA, "t1")
    asked = await desk.agent.run("ship it", session=session)
    await memory.publish(scope="actor:ana", key="units", text="miles", ctx=ScopeContext(actor=ANA))
    provider.asked = 0

    # when the user goes on with something else, and answers after that
    await desk.agent.run("how do we ship?", session=session)
    answers = [request.to_function_approval_response(approved=True) for request in asked.user_input_requests]
    done = await desk.agent.run(Message("user", answers), session=session)

    # then the other message was a run of its own, and the answer went on with the digest of the run that waited
    assert done.text == "shipped" and provider.asked == 1
    between, resumed = later.systems
    assert "units: miles" in between and resumed == first.systems[0]
    assert not session.state["onfile_memory"]


async def test_two_approvals_that_are_answered_one_at_a_time_share_the_digest_of_their_run():
    # given a run that waits for two answers
    scripts = Scripts()
    seen = scripts.add("ship both", [ship("c8"), ship("c9")], "shipped")
    provider = CountingProvider(records=[fact()])
    desk = AgentFrameworkDesk(Memory(provider), scripts)
    session = session_of(ANA, "t1")
    asked = await desk.agent.run("ship both", session=session)

    # when they come one by one
    for request in asked.user_input_requests:
        assert session.state["onfile_memory"]["waiting"]
        answer = request.to_function_approval_response(approved=True)
        done = await desk.agent.run(Message("user", [answer]), session=session)

    # then nobody was asked again, and nothing is kept any more
    assert done.text == "shipped"
    assert provider.asked == 1 and len(set(seen.systems)) == 1
    assert not session.state["onfile_memory"]


async def test_two_runs_of_one_session_at_once_keep_their_own_scopes():
    # given a session that the host hands from one person to another
    scripts = Scripts()
    first = scripts.add("I am Ana", [remember("desk", "window")], "a")
    desk = AgentFrameworkDesk(Memory(InMemoryMemoryProvider()), scripts)
    session = session_of(ANA, "t1")

    # when the one's call is answered after the session changed hands
    say = scripts.say

    async def and_change_hands(*args: Any, **kwargs: Any) -> Any:
        session.state["signed_in"] = {"id": "bo", "tenant_ref": "acme"}
        return await say(*args, **kwargs)

    scripts.say = and_change_hands
    await desk.agent.run("I am Ana", session=session)

    # then it is still hers
    assert first.results["c1"].startswith("Recorded [actor:ana] desk: window")


async def test_without_a_session_a_run_has_memory_as_well():
    scripts = Scripts()
    seen = scripts.add("hi", "done")
    memory = MemoryContextProvider(Memory(InMemoryMemoryProvider(records=[fact()])), actor=lambda session: ANA)
    agent = Agent(ScriptedClient(scripts), context_providers=[memory])

    await agent.run("hi")

    assert "units: kilometres" in seen.systems[0]


@pytest.mark.parametrize("sent", ["", "{", "[1]", '"units"', json.dumps({"key": 1, "fact": "x"})])
async def test_arguments_that_are_no_object_of_strings_are_refused_in_words(sent: str):
    scripts = Scripts()
    seen = scripts.add("hi", [Call(name="remember", arguments=sent)], "done")
    desk = AgentFrameworkDesk(Memory(InMemoryMemoryProvider()), scripts)

    assert await desk.turn(ANA, "hi") == "done"

    assert seen.results["c1"].startswith("Not recorded. ")


async def test_a_streamed_turn_has_memory_and_waits_for_an_approval_as_well():
    # given an agent that is streamed
    scripts = Scripts()
    seen = scripts.add("ship it", [remember("carrier", "by rail"), ship()], "shipped")
    provider = CountingProvider(records=[fact()])
    desk = AgentFrameworkDesk(Memory(provider), scripts)
    session = session_of(ANA, "t1")

    # when it waits and goes on
    asked = await desk.agent.run("ship it", session=session, stream=True).get_final_response()
    answers = [request.to_function_approval_response(approved=True) for request in asked.user_input_requests]
    done = await desk.agent.run(Message("user", answers), session=session, stream=True).get_final_response()

    # then both read the same block, resolved once
    assert done.text == "shipped" and provider.asked == 1
    assert len(seen.systems) == 2 and len(set(seen.systems)) == 1
    assert not session.state["onfile_memory"]
