"""A call that is cancelled, wherever it waits, leaves no transaction open and no connection out."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any

import pytest

from onfile.stores import SqlMemoryProvider
from tests.stores.desk import Desk


class CancelledAt:
    """Awaits a coroutine and cancels its task where it waits for the n-th time."""

    def __init__(self, work: Coroutine[Any, Any, Any], step: int) -> None:
        self.work, self.step, self.reached = work, step, False

    def __await__(self) -> Generator[Any, Any, Any]:
        steps, value, error = 0, None, None
        while True:
            try:
                waits_for = self.work.throw(error) if error is not None else self.work.send(value)
            except StopIteration as done:
                return done.value
            steps += 1
            value = error = None
            if steps == self.step:
                self.reached = True
                task = asyncio.current_task()
                assert task is not None
                asyncio.get_running_loop().call_soon(task.cancel)
            try:
                value = yield waits_for
            except BaseException as thrown:  # noqa: BLE001  # handed on to the coroutine, as a task does
                error = thrown


async def cancelled_at(work: Coroutine[Any, Any, Any], step: int) -> bool:
    """Whether the call waited that often; it has ended either way."""
    waiting = CancelledAt(work, step)

    async def run() -> None:
        await waiting

    task = asyncio.create_task(run())
    await asyncio.wait([task], timeout=20)
    assert task.done()
    return waiting.reached


CALLS = ["write", "overwrite", "list", "forget", "restore", "pin", "export"]


@pytest.mark.parametrize("call", CALLS)
async def test_a_cancellation_at_any_await_leaves_nothing_open(desk, engine, call):
    kept = await desk.store.get((await desk.write("kept")).id)

    async def export() -> None:
        async for _ in desk.store.export():
            pass

    calls = {
        "write": lambda step: desk.write(f"key {step}"),
        "overwrite": lambda step: desk.write("kept", f"text {step}"),
        "list": lambda step: desk.list(),
        "forget": lambda step: desk.forget(kept.record.id),
        "restore": lambda step: desk.store.restore([kept], on_conflict="replace"),
        "pin": lambda step: desk.store.pin(id=kept.record.id, pinned=bool(step % 2)),
        "export": lambda step: export(),
    }
    step = 1
    while await cancelled_at(calls[call](step), step):
        # another writer at once: nothing is locked
        await asyncio.wait_for(desk.write("after", f"{call} {step}"), 5)
        if call == "forget":
            await desk.store.restore([kept], on_conflict="skip")
        step += 1

    assert step > 1
    await asyncio.sleep(0)
    pool = engine.sync_engine.pool
    assert getattr(pool, "checkedout", int)() == 0
    assert set(await desk.texts()) >= {"after"}


async def test_a_store_still_works_after_many_cancelled_at_once(desk):
    tasks = [asyncio.create_task(desk.write(f"key {number}")) for number in range(40)]
    await asyncio.sleep(0.01)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)

    await desk.write("after")

    assert "after" in await desk.texts()
    assert isinstance(desk, Desk)
    assert isinstance(desk.store, SqlMemoryProvider)
