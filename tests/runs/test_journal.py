"""The journal's promises, wherever it is kept."""

from __future__ import annotations

import pytest

from onfile.runs.journal import (
    CheckpointError,
    JournalEngine,
    NewRun,
    NonDeterminismError,
    RunFenced,
    RunSuspended,
    RunUnavailable,
)
from tests.runs.conftest import Place
from tests.runs.script import CTX


@pytest.fixture
async def engine(place: Place) -> JournalEngine:
    """A place that keeps one run, which nobody has claimed yet."""
    await place.journal.create(NewRun(id="r1", text="hello", ctx=CTX))
    return place.journal


def work(value, done: list | None = None):
    async def do(*_):
        if done is not None:
            done.append(value)
        return value

    return do


async def test_a_recorded_step_answers_without_doing_the_work_again(engine):
    done: list = []
    first = await engine.claim("r1", owner="a")
    await first.step("one", work(1, done))

    second = await engine.claim("r1", owner="b")

    assert await second.step("one", work(2, done)) == 1
    assert await second.tx("two", work(3, done)) == 3
    assert done == [1, 3]


async def test_another_name_at_a_position_names_run_position_expected_and_found(engine):
    first = await engine.claim("r1", owner="a")
    await first.step("persist:user", work(1))
    await first.step("memory:digest", work(2))

    second = await engine.claim("r1", owner="a")
    await second.step("persist:user", work(1))
    with pytest.raises(NonDeterminismError) as told:
        await second.step("llm:0", work(3))

    error = told.value
    assert (error.run_id, error.position, error.expected, error.found) == ("r1", 2, "memory:digest", "llm:0")
    assert str(error).startswith(
        "step 2 of run r1 was recorded as 'memory:digest' but the code now asks for 'llm:0': the code changed"
    )


async def test_the_first_run_sees_the_value_as_every_replay_will(engine):
    first = await engine.claim("r1", owner="a")

    assert await first.step("one", work((1, {"a": (2,)}))) == [1, {"a": [2]}]


@pytest.mark.parametrize("value", [object(), {1, 2}, float("nan"), b"x"])
async def test_a_value_that_is_no_json_names_its_checkpoint_and_not_itself(engine, value):
    first = await engine.claim("r1", owner="a")

    with pytest.raises(CheckpointError, match="checkpoint 'one' is not plain JSON"):
        await first.step("one", work(value))
    assert await engine.checkpoints("r1") == []


async def test_a_wait_parks_the_run_until_it_is_signalled_and_the_first_answer_wins(engine):
    first = await engine.claim("r1", owner="a")
    with pytest.raises(RunSuspended):
        await first.wait("approval:c1")
    assert (await engine.get("r1")).waits_for == "approval:c1"
    with pytest.raises(RunUnavailable, match="answer it first"):
        await engine.claim("r1", owner="b")

    assert await engine.signal("r1", "approval:c1", {"approved": True}) is True
    assert await engine.signal("r1", "approval:c1", {"approved": False}) is False

    second = await engine.claim("r1", owner="b")
    assert await second.wait("approval:c1") == {"approved": True}


async def test_an_owner_that_lost_its_run_can_commit_nothing(engine):
    first = await engine.claim("r1", owner="a")
    await engine.claim("r1", owner="b")

    for commit in (first.step("one", work(1)), first.tx("one", work(1)), first.wait("one")):
        with pytest.raises(RunFenced):
            await commit
    assert await engine.checkpoints("r1") == []


async def test_a_cancelled_run_can_neither_go_on_nor_be_claimed(engine):
    first = await engine.claim("r1", owner="a")

    assert await engine.cancel("r1") is True
    assert await engine.cancel("r1") is False

    with pytest.raises(RunFenced):
        await first.step("one", work(1))
    with pytest.raises(RunUnavailable, match="has ended"):
        await engine.claim("r1", owner="a")


async def test_what_a_failed_transaction_did_is_undone_and_the_failure_recorded_in_its_place(engine):
    first = await engine.claim("r1", owner="a")

    async def fails(unit):
        await unit.end({"text": "too early"})
        raise LookupError

    assert await first.tx("tool:c1", fails, failed=lambda error: type(error).__name__) == "LookupError"
    assert (await engine.get("r1")).status == "running"
    with pytest.raises(LookupError):
        await first.tx("tool:c2", fails)
    assert [one.name for one in await engine.checkpoints("r1")] == ["tool:c1"]


async def test_an_id_is_given_to_one_run_only(engine):
    with pytest.raises(RunUnavailable, match="already"):
        await engine.create(NewRun(id="r1", text="again", ctx=CTX))
    with pytest.raises(RunUnavailable, match="there is no run"):
        await engine.claim("r2", owner="a")
