"""`PollingWorker`: carries runs on beside other workers, with nothing but the database they are in."""

from __future__ import annotations

import asyncio
import logging

from .journal import Journal
from .runner import TurnRunner

_log = logging.getLogger("onfile.runs")


class PollingWorker:
    """Takes the runs that nobody carries and nobody waits for, the oldest first, several at once.

    Start as many as you like on one database, each with a `TurnRunner` of another owner. When one dies,
    the others take its runs over once it was not seen for the runner's `lost_after` seconds.
    """

    def __init__(self, runner: TurnRunner, *, concurrency: int = 4, poll_seconds: float = 0.5) -> None:
        """Take what carries the runs.

        Args:
            runner: Its owner names this worker: the same after a restart, another one in every other process.
            concurrency: How many runs at once.
            poll_seconds: How long a run waits at most until an idle worker sees it.
        """
        self.runner = runner
        self._concurrency = concurrency
        self._poll_seconds = poll_seconds
        self._under_way: set[asyncio.Task[None]] = set()

    async def work(self) -> None:
        """Carry runs on until this is cancelled; what is under way then is left to the others at once."""
        try:
            # What this name had when its process died: nobody needs to wait for that.
            await self.runner.engine.disown(self.runner.owner)
            while True:
                await self._fill()
                await self._wait()
        finally:
            for task in self._under_way:
                task.cancel()
            await asyncio.gather(*self._under_way, return_exceptions=True)
            self._under_way.clear()

    async def _fill(self) -> None:
        while len(self._under_way) < self._concurrency:
            journal = await self._next()
            if journal is None:
                return
            self._under_way.add(asyncio.create_task(self._carry_on(journal)))

    async def _wait(self) -> None:
        if not self._under_way:
            await asyncio.sleep(self._poll_seconds)
            return
        is_full = len(self._under_way) >= self._concurrency
        _, self._under_way = await asyncio.wait(
            self._under_way, timeout=None if is_full else self._poll_seconds, return_when=asyncio.FIRST_COMPLETED
        )

    async def _next(self) -> Journal | None:
        try:
            return await self.runner.engine.claim_next(owner=self.runner.owner, lost_after=self.runner.lost_after)
        except Exception as error:  # noqa: BLE001  # a database that is away is asked again, for as long as it takes
            _log.warning("no run could be claimed (%s); trying again", type(error).__name__)
            return None

    async def _carry_on(self, journal: Journal) -> None:
        try:
            await self.runner.carry_on(journal)
        except Exception as error:  # noqa: BLE001  # one run that fails must not stop the others; the run keeps the type
            # No traceback: its lines may hold content.
            _log.error("run %s stopped with %s; it can be resumed", journal.run_id, type(error).__name__)
