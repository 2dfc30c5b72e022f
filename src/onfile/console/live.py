"""Turns under way in this process: they go on whether or not somebody looks, and anybody may begin to look."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import TYPE_CHECKING, Any

from .watching import Tell, TurnEvent
from .words import failure_words

if TYPE_CHECKING:
    from ..runs.runner import TurnResult

Work = Callable[[Tell], Coroutine[Any, Any, "TurnResult"]]


class LiveTurn:
    """One turn under way, with what has happened in it so far."""

    def __init__(self, work: Work) -> None:
        self.failure = ""
        """In words, once the turn has stopped without an answer."""
        self._events: list[TurnEvent] = []
        self._news = asyncio.Event()
        self._task = asyncio.ensure_future(self._run(work))

    @property
    def over(self) -> bool:
        """Whether nothing more will happen here."""
        return self._task.done()

    async def settled(self, seconds: float | None = None) -> bool:
        """Wait until the turn is done, waits for a person or failed; False where that takes longer."""
        done, _ = await asyncio.wait({self._task}, timeout=seconds)
        return bool(done)

    async def follow(self) -> AsyncIterator[TurnEvent]:
        """Answer what has happened and what happens, until nothing more does."""
        place = 0
        while True:
            # Taken before looking, so that what happens after the look wakes us.
            news, ended = self._news, self.over
            while place < len(self._events):
                yield self._events[place]
                place += 1
            if ended:
                return
            await news.wait()

    async def stop(self) -> None:
        """Leave the turn to whoever comes next."""
        self._task.cancel()
        await asyncio.wait({self._task})

    async def _run(self, work: Work) -> None:
        try:
            await work(self._tell)
        except Exception as error:  # noqa: BLE001  # whatever a model raises is told on the page; the turn is kept
            self.failure = failure_words(error)
        finally:
            self._wake()

    def _tell(self, event: TurnEvent) -> None:
        self._events.append(event)
        self._wake()

    def _wake(self) -> None:
        told, self._news = self._news, asyncio.Event()
        told.set()


class LiveTurns:
    """The turns that this process carries, one task each."""

    def __init__(self) -> None:
        self._turns: dict[str, LiveTurn] = {}

    def get(self, run_id: str) -> LiveTurn | None:
        """Answer a turn that is under way here."""
        turn = self._turns.get(run_id)
        return None if turn is None or turn.over else turn

    def start(self, run_id: str, work: Work) -> LiveTurn:
        """Carry a turn on, unless it is under way here already."""
        for over in [name for name, turn in self._turns.items() if turn.over]:
            del self._turns[over]
        if run_id not in self._turns:
            self._turns[run_id] = LiveTurn(work)
        return self._turns[run_id]

    async def stop(self) -> None:
        """Leave every turn to whoever comes next, such as this server when it is started again."""
        for turn in list(self._turns.values()):
            await turn.stop()
