"""What every adapter must do, tried on each against the real framework and its own way of faking a model.

A framework's test module subclasses `AdapterBehaviour`, says how its agents are built and run, and what of each promise
its seams can hold. What it says is the table of docs/adapters.md, and a promise that it says it holds is tried on it.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import pytest

from onfile import Actor, Memory
from onfile.errors import StoreError
from onfile.events import UNAVAILABLE
from onfile.testing import InMemoryMemoryProvider
from tests.facts import fact

from .scripts import BrokenProvider, CountingProvider, Scripts, remember, ship

ANA = Actor(id="ana", tenant_ref="acme")
BO = Actor(id="bo", tenant_ref="acme")


PROMISES = {
    "once": "the provider is asked once per run",
    "identical": "identical block in every model call of a run",
    "place": "block behind the base prompt, in front of retrieval and skills",
    "told": "a fact is told as the tool's result, and is in the next run's block",
    "words": "no scope argument; refusals in words",
    "origin": "a fact's origin names actor, thread and run",
    "people": "two people at once on one agent object",
    "absent": "`remember` absent where it could only be refused",
    "approval": "an approval answered in another process, with the same bytes",
    "another": "resumed for another person: fails",
    "killed": "killed, and recovered by another process with the same bytes",
    "reading": "a provider that fails when the run begins fails it loudly",
    "writing": "a provider that fails in a `remember` call fails the run loudly",
    "goes_on": '`on_error="continue"`: runs without memory, and an event says so',
}
"""The rows of the table in docs/adapters.md, in their order."""


def seam(**said: str) -> dict[str, str]:
    """Say what a framework's seams hold, where it is more than "yes"."""
    assert set(said) <= set(PROMISES)
    return {promise: said.get(promise, "yes") for promise in PROMISES}


Test = TypeVar("Test", bound=Callable[..., Any])


def holds(*promises: str) -> Callable[[Test], Test]:
    """Say which rows of the table a test holds."""
    assert set(promises) <= set(PROMISES)

    def note(test: Test) -> Test:
        test.promises = promises
        return test

    return note


class Desk(Protocol):
    """One agent object of a framework, with memory."""

    async def turn(self, actor: Actor, message: str, *, thread: str = "t1") -> str:
        """Run one turn to its end and answer what the model said last."""
        ...

    async def until_approval(self, actor: Actor, message: str) -> Any:
        """Run a turn until a person must approve, and answer what is kept of it, as text or bytes."""
        ...

    async def approve(self, kept: Any, actor: Actor) -> str:
        """Go on with what was kept, approved, as if in another process."""
        ...


def block_of(system: str) -> str:
    """The one block in all that stood before the conversation, or nothing."""
    blocks = re.findall(r"<memory>.*?</memory>", system, re.DOTALL)
    assert len(blocks) <= 1
    return blocks[0] if blocks else ""


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what it was raised from."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


class AdapterBehaviour:
    """The shared suite."""

    framework: ClassVar[str]
    """The heading of its column."""
    install: ClassVar[str]
    """What `pip install` is given."""
    seam: ClassVar[dict[str, str]]
    """Per promise what the table says; what begins with "no" is not tried."""
    redacts = False
    """Whether the framework keeps the words of what is raised to itself."""
    folder: Path
    """For what a framework keeps in files."""

    def desk(self, memory: Memory, scripts: Scripts, *, on_error: Any = "fail") -> Desk:
        raise NotImplementedError

    @pytest.fixture(autouse=True)
    def _held(self, request: pytest.FixtureRequest) -> None:
        for promise in getattr(request.function, "promises", ()):
            if self.seam[promise].startswith("no"):
                pytest.skip(f"{PROMISES[promise]}: {self.seam[promise]}")

    @pytest.fixture(autouse=True)
    def _in_a_folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    @pytest.fixture
    def scripts(self) -> Scripts:
        return Scripts()

    @holds("once", "identical")
    async def test_the_provider_is_asked_once_per_run_and_both_model_calls_get_the_same_bytes(self, scripts):
        # given a fact on file
        provider = CountingProvider(records=[fact("units", "kilometres", scope="tenant:acme")])
        desk = self.desk(Memory(provider), scripts)
        seen = scripts.add("label a pallet", [remember("carrier", "by rail")], "done")

        # when a turn calls the model twice, and remembers in between
        assert await desk.turn(ANA, "label a pallet") == "done"

        # then the provider was asked once, and the block did not move
        assert provider.asked == 1
        first, second = seen.systems
        assert first == second
        assert "[tenant:acme] units: kilometres" in block_of(first)

    @holds("place")
    async def test_the_block_follows_the_host_s_own_instructions(self, scripts):
        desk = self.desk(Memory(InMemoryMemoryProvider(records=[fact()])), scripts)
        seen = scripts.add("hi", "done")

        await desk.turn(ANA, "hi")

        assert seen.systems[0].startswith("BASE") and seen.systems[0].endswith("</memory>")

    @holds("told")
    async def test_a_fact_is_told_as_the_call_s_result_and_stands_in_the_next_run_s_block(self, scripts):
        memory = Memory(InMemoryMemoryProvider())
        desk = self.desk(memory, scripts)
        first = scripts.add("we ship by rail", [remember("carrier", "by rail")], "noted")
        second = scripts.add("how do we ship?", "by rail")

        await desk.turn(ANA, "we ship by rail")
        await desk.turn(ANA, "how do we ship?", thread="t2")

        assert first.results["c1"] == "Recorded [actor:ana] carrier: by rail. It replaced nothing."
        assert "by rail" not in "".join(map(block_of, first.systems))
        assert "[actor:ana] carrier: by rail" in block_of(second.systems[0])

    @holds("words")
    async def test_the_model_is_offered_exactly_a_key_and_a_fact(self, scripts):
        desk = self.desk(Memory(InMemoryMemoryProvider()), scripts)
        seen = scripts.add("hi", "done")

        await desk.turn(ANA, "hi")

        schema = seen.offered[0]["remember"]
        assert set(schema["properties"]) == set(schema["required"]) == {"key", "fact"}

    @holds("words")
    async def test_a_scope_argument_is_refused_by_name_and_nothing_is_written(self, scripts):
        memory = Memory(InMemoryMemoryProvider())
        desk = self.desk(memory, scripts)
        seen = scripts.add("tell everybody", [remember("units", "miles", scope="tenant:acme")], "done")

        await desk.turn(ANA, "tell everybody")

        assert "`scope`" in seen.results["c1"] and "[actor:ana]" in seen.results["c1"]
        assert await memory.provider.list(_everything()) == []

    @holds("words")
    async def test_a_refused_write_reaches_the_model_as_words(self, scripts):
        # given what a person stated
        provider = InMemoryMemoryProvider(records=[fact("units", "kilometres", author="human")])
        desk = self.desk(Memory(provider), scripts)
        seen = scripts.add("use miles", [remember("units", "miles")], "done")

        # when the model would overwrite it
        assert await desk.turn(ANA, "use miles") == "done"

        # then it is told which note stands
        assert seen.results["c1"].startswith("Not recorded. A person stated")
        assert "kilometres" in seen.results["c1"]

    @holds("people")
    async def test_two_actors_at_once_on_one_agent_never_see_each_other_s_facts(self, scripts):
        # given a fact of each
        records = [fact("lunch", "lentils", scope="actor:ana"), fact("lunch", "tofu", scope="actor:bo")]
        memory = Memory(InMemoryMemoryProvider(records=records))
        desk = self.desk(memory, scripts)
        anas = scripts.add("I am Ana", [remember("desk", "window")], "a")
        bos = scripts.add("I am Bo", [remember("desk", "door")], "b")

        # when their turns are interleaved on one agent object: neither goes on before both were asked
        scripts.together = asyncio.Barrier(2)
        async with asyncio.timeout(20):
            await asyncio.gather(desk.turn(ANA, "I am Ana", thread="ta"), desk.turn(BO, "I am Bo", thread="tb"))

        # then each saw and wrote their own only
        assert all("lentils" in system and "tofu" not in system for system in anas.systems)
        assert all("tofu" in system and "lentils" not in system for system in bos.systems)
        assert "[actor:ana] desk: window" in anas.results["c1"]
        assert "[actor:bo] desk: door" in bos.results["c1"]

    @holds("reading")
    async def test_a_provider_s_failure_fails_the_run_loudly(self, scripts):
        desk = self.desk(Memory(BrokenProvider()), scripts)
        seen = scripts.add("hi", "done")

        with pytest.raises(Exception, match="the database is gone"):
            await desk.turn(ANA, "hi")

        assert not seen.systems

    @holds("writing")
    async def test_a_provider_that_cannot_write_just_now_fails_the_run_loudly(self, scripts):
        provider = BrokenProvider()
        provider.broken_for = ("write",)
        desk = self.desk(Memory(provider), scripts)
        seen = scripts.add("hi", [remember("units", "miles")], "done")

        with pytest.raises(Exception) as failed:
            await desk.turn(ANA, "hi")

        # the framework may wrap it in an error of its own, but not keep it from the host
        assert any(isinstance(error, StoreError) for error in chain(failed.value))
        assert len(seen.systems) == 1

    @holds("goes_on")
    async def test_where_the_host_said_so_a_run_goes_on_without_memory_and_an_event_tells(self, scripts):
        # given a provider that is gone and a host that would rather answer
        events: list[Any] = []
        desk = self.desk(Memory(BrokenProvider(), on_event=events.append), scripts, on_error="continue")
        seen = scripts.add("hi", "done")

        # when a turn runs
        assert await desk.turn(ANA, "hi") == "done"

        # then there was no block and no tool, and an event says so without a fact
        assert block_of(seen.systems[0]) == ""
        assert "remember" not in seen.offered[0]
        (told,) = [event for event in events if event.name == UNAVAILABLE]
        assert (told.payload["act"], told.payload["error"]) == ("offer", "StoreError")

    @holds("goes_on")
    async def test_where_the_host_said_so_a_failed_write_is_told_to_the_model(self, scripts):
        provider = BrokenProvider()
        provider.broken_for = ("write",)
        events: list[Any] = []
        desk = self.desk(Memory(provider, on_event=events.append), scripts, on_error="continue")
        seen = scripts.add("hi", [remember("units", "miles")], "done")

        assert await desk.turn(ANA, "hi") == "done"

        assert seen.results["c1"].startswith("Not recorded. Memory cannot be reached")
        assert [event.payload["act"] for event in events if event.name == UNAVAILABLE] == ["remember"]

    @holds("absent")
    async def test_a_read_only_provider_is_offered_no_tool(self, scripts):
        provider = InMemoryMemoryProvider(records=[fact()])
        provider.write = None  # having the method is the claim
        desk = self.desk(Memory(provider), scripts)
        seen = scripts.add("hi", "done")

        await desk.turn(ANA, "hi")

        assert "remember" not in seen.offered[0]
        assert "units: kilometres" in block_of(seen.systems[0])

    @holds("approval")
    def test_a_run_that_waits_is_resumed_by_another_process_with_the_same_bytes(self, tmp_path: Path, project: Path):
        # given a process that ended while a person was asked, and kept its run as the framework keeps it
        started = self._process("start", tmp_path, project)
        assert started["asked"] == 1

        # when another one goes on with it, approved, on a store that holds something else by now
        resumed = self._process("resume", tmp_path, project)

        # then nobody asked again, the model read identical bytes, and the host's tool was run
        assert resumed["output"] == "shipped" and resumed["asked"] == 0
        assert resumed["systems"] == started["systems"]
        assert "kilometres" in block_of(resumed["systems"][0])
        assert resumed["results"]["c9"] == "shipped"

    def _process(self, act: str, folder: Path, project: Path) -> dict[str, Any]:
        of = f"{type(self).__module__.rpartition('.')[2]}:{type(self).__name__}"
        done = subprocess.run(
            [sys.executable, "-m", "tests.adapters.waiting_turn", of, str(folder), act],
            cwd=project,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    @holds("another")
    async def test_a_run_resumed_for_another_actor_fails_loudly(self, scripts):
        seen = scripts.add("ship it", [ship()], "shipped")
        memory = Memory(InMemoryMemoryProvider(records=[fact("lunch", "lentils")]))
        waiting = await self.desk(memory, scripts).until_approval(ANA, "ship it")

        with pytest.raises(Exception) as failed:
            await self.desk(memory, scripts).approve(waiting, BO)

        # then the model was not asked a second time, and told nothing of Ana's to Bo
        assert len(seen.systems) == 1
        assert self.redacts or any("started for another actor" in str(error) for error in chain(failed.value))

    @holds("origin")
    async def test_what_a_run_writes_says_where_it_came_from(self, scripts):
        memory = Memory(InMemoryMemoryProvider())
        desk = self.desk(memory, scripts)
        scripts.add("hi", [remember("units", "miles")], "done")

        await desk.turn(ANA, "hi", thread="thread-7")

        (record,) = await memory.provider.list(_everything())
        assert record.origin.author == "agent" and record.origin.actor_ref == "ana"
        assert record.origin.thread_id == "thread-7"
        assert json.dumps(record.origin.run_id) != "null"


def _everything() -> Any:
    from onfile import ListMemories, ScopeContext

    return ListMemories(scopes=("actor:ana", "actor:bo", "tenant:acme", "global"), ctx=ScopeContext(actor=ANA))
