"""Who carries a run, and what becomes of it when nobody has seen them for a while."""

from __future__ import annotations

import asyncio

import pytest

from onfile.runs.assistant import Assistant
from onfile.runs.inline import InlineJournal
from onfile.runs.journal import NewRun, RunFenced, RunHeld
from onfile.runs.polling import PollingWorker
from onfile.runs.runner import TurnRunner
from onfile.runs.tools import action_tool, read_tool
from tests.runs.conftest import Place
from tests.runs.script import CTX, Script, call, names


@action_tool
def ship(order: str) -> str:
    """Ship an order."""
    return f"shipped {order}"


async def created(place: Place, *ids: str) -> None:
    for id_ in ids:
        await place.journal.create(NewRun(id=id_, text="hello", ctx=CTX))


async def done(place: Place, *ids: str) -> None:
    async with asyncio.timeout(20):
        for id_ in ids:
            while (await place.journal.get(id_)).status != "done":
                await asyncio.sleep(0.02)


class Working:
    """A worker that works as long as the test is in its block."""

    def __init__(self, runner: TurnRunner, **more) -> None:
        self._worker = PollingWorker(runner, poll_seconds=0.05, **more)

    async def __aenter__(self) -> None:
        self._task = asyncio.create_task(self._worker.work())

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.wait({self._task})


async def test_the_oldest_run_is_taken_first_and_by_one_only(place: Place):
    await created(place, "r1", "r2")

    taken = [await place.journal.claim_next(owner=owner, lost_after=30) for owner in ("a", "b", "c")]

    assert [one and one.run_id for one in taken] == ["r1", "r2", None]
    assert (await place.journal.get("r1")).owner == "a"


async def test_a_run_that_begins_is_its_owners_from_the_start(place: Place):
    held = await place.journal.begin(NewRun(id="r1", text="hello", ctx=CTX), owner="a")

    assert (held.run.text, held.run.status, held.run.owner, held.epoch) == ("hello", "running", "a", 1)
    assert await place.journal.claim_next(owner="b", lost_after=30) is None
    assert await held.step("one", nothing) == {}


async def nothing():
    return {}


async def test_whoever_was_seen_keeps_a_run_and_whoever_was_not_loses_it(shared: Place):
    held = await shared.journal.begin(NewRun(id="r1", text="hello", ctx=CTX), owner="a")
    with pytest.raises(RunHeld, match="carried by a, who was seen a moment ago"):
        await shared.journal.claim("r1", owner="b", lost_after=30)

    await asyncio.sleep(1.1)
    assert await shared.journal.renew("r1", epoch=held.epoch)
    assert await shared.journal.claim_next(owner="b", lost_after=1) is None
    await asyncio.sleep(1.1)

    assert [run.id for run in await shared.journal.left(lost_after=1)] == ["r1"]
    taken = await shared.journal.claim_next(owner="b", lost_after=1)
    assert taken is not None and taken.epoch == 2
    assert await shared.journal.renew("r1", epoch=held.epoch) is False
    with pytest.raises(RunFenced):
        await held.step("one", nothing)


async def test_an_owner_that_comes_back_leaves_what_it_had_to_whoever_comes_next(place: Place):
    held = await place.journal.begin(NewRun(id="r1", text="hello", ctx=CTX), owner="a")
    await place.journal.begin(NewRun(id="r2", text="hello", ctx=CTX), owner="b")

    assert await place.journal.disown("a") == 1

    assert [run.id for run in await place.journal.left(lost_after=30)] == ["r1"]
    with pytest.raises(RunFenced):
        await held.step("one", nothing)


async def test_only_the_owner_can_release_a_run(place: Place):
    await place.journal.begin(NewRun(id="r1", text="hello", ctx=CTX), owner="a")
    await place.journal.claim("r1", owner="b")

    await place.journal.release("r1", epoch=1)
    assert (await place.journal.get("r1")).owner == "b"
    await place.journal.release("r1", epoch=2)

    assert (await place.journal.get("r1")).status == "ready"


async def test_a_worker_carries_on_what_is_queued_and_what_a_person_decided(shared: Place):
    script = Script([[call("ship", order="o1")], "Done."])
    runner = TurnRunner(Assistant(model=script.model(), tools=[ship]), shared.journal, owner="w1")
    await created(shared, "r1")

    async with Working(runner):
        while (await shared.journal.get("r1")).status != "waiting":
            await asyncio.sleep(0.02)
        await runner.decide("r1", "c1", approved=True)
        await done(shared, "r1")

    assert (await names(shared.journal))[-1] == "persist:run:end"


async def test_a_run_that_fails_does_not_stop_a_worker(sqlite: Place, caplog):
    def model_of(said: str):
        return Script([said]).model()

    class Failing(TurnRunner):
        async def carry_on(self, journal, *, on_text=None):
            if journal.run_id == "r1":
                self.assistant = Assistant(model="no-such-provider:none")
            else:
                self.assistant = Assistant(model=model_of("Hello."))
            return await super().carry_on(journal, on_text=on_text)

    await created(sqlite, "r1", "r2")
    async with Working(Failing(Assistant(model="test"), sqlite.journal, owner="w1"), concurrency=1):
        await done(sqlite, "r2")

    failed = await sqlite.journal.get("r1")
    assert failed.status == "failed"
    assert f"run r1 stopped with {failed.error}; it can be resumed" in caplog.text


async def test_a_worker_that_is_stopped_leaves_its_runs_to_the_others_at_once(shared: Place):
    started = asyncio.Event()

    @read_tool
    async def slow() -> str:
        """Take very long."""
        started.set()
        await asyncio.sleep(60)
        return ""

    script = Script([[call("slow")], "Done."])
    runner = TurnRunner(Assistant(model=script.model(), tools=[slow]), shared.journal, owner="w1")
    await created(shared, "r1")

    async with Working(runner):
        await asyncio.wait_for(started.wait(), 10)

    left = await shared.journal.get("r1")
    assert (left.status, left.owner) == ("ready", None)
    assert (await names(shared.journal))[-1] == "persist:toolcall:c1"


async def test_an_owner_that_takes_long_is_seen_meanwhile_and_keeps_its_run(shared: Place):
    @read_tool
    async def slow() -> str:
        """Take longer than a lost owner would have."""
        await asyncio.sleep(1.5)
        return "slowly"

    script = Script([[call("slow")], "Done."])
    parts = Assistant(model=script.model(), tools=[slow])
    slowly = TurnRunner(parts, shared.journal, owner="a", lost_after=0.6)

    async with Working(TurnRunner(parts, shared.journal, owner="b", lost_after=0.6)):
        result = await slowly.start("hello", ctx=CTX, run_id="r1")

    assert result.text == "Done."
    assert (await shared.journal.get("r1")).epoch == 1


async def test_an_owner_that_lost_its_run_stops_what_it_was_doing(shared: Place):
    stopped = asyncio.Event()

    @read_tool
    async def slow() -> str:
        """Take very long."""
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            stopped.set()
            raise
        return ""

    script = Script([[call("slow")], "Done."])
    runner = TurnRunner(Assistant(model=script.model(), tools=[slow]), shared.journal, owner="a", lost_after=0.3)
    turn = asyncio.create_task(runner.start("hello", ctx=CTX, run_id="r1"))
    while "persist:toolcall:c1" not in await names(shared.journal):
        await asyncio.sleep(0.02)

    await shared.journal.claim("r1", owner="b")

    result = await asyncio.wait_for(turn, 10)
    assert stopped.is_set()
    assert (result.status, (await shared.journal.get("r1")).owner) == ("running", "b")


async def test_a_turn_that_its_caller_cancels_is_ready_for_whoever_comes_next():
    engine, started = InlineJournal(), asyncio.Event()

    @read_tool
    async def slow() -> str:
        """Take very long."""
        started.set()
        await asyncio.sleep(60)
        return ""

    script = Script([[call("slow")], "Done."])
    turn = asyncio.create_task(
        TurnRunner(Assistant(model=script.model(), tools=[slow]), engine).start("hello", ctx=CTX, run_id="r1")
    )
    await asyncio.wait_for(started.wait(), 10)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn

    assert (await engine.get("r1")).status == "ready"


@pytest.mark.parametrize("owner", ["local", "other"])
async def test_two_that_resume_one_run_at_once_do_its_action_once(place: Place, owner: str):
    done: list[str] = []

    @action_tool
    async def ship(order: str) -> str:
        """Ship an order."""
        await asyncio.sleep(0.2)
        done.append(order)
        return "shipped"

    script = Script([[call("ship", order="o1")], "Done."])
    first = TurnRunner(Assistant(model=script.model(), tools=[ship]), place.journal)
    second = first if owner == "local" else TurnRunner(first.assistant, place.journal, owner=owner)
    await first.start("hello", ctx=CTX, run_id="r1")
    await first.decide("r1", "c1", approved=True)

    results = await asyncio.gather(first.resume("r1"), later(second), return_exceptions=True)

    assert done == ["o1"]
    assert (await place.journal.get("r1")).status == "done"
    # One that is this runner's own is waited for; another owner's is left to them.
    assert [getattr(one, "status", type(one)) for one in results] == ["done", "done" if owner == "local" else RunHeld]


async def later(runner: TurnRunner):
    await asyncio.sleep(0.05)
    return await runner.resume("r1")
