"""A crowd at the door: many reads at once, let in a few at a time so that the event loop stays free."""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary


class Crowd:
    """Lets so many in at once on each event loop; the others wait where waiting costs next to nothing.

    A thousand turns that begin together would each build a statement and ask the pool for a
    connection before anything else gets its turn, a tenth of a second in one go, and could not be
    served sooner for it. Never entered twice by one task.
    """

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        # One per loop: a semaphore that was waited for belongs to its loop for good.
        self._doors: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    def door(self) -> asyncio.Semaphore:
        """Answer the running loop's door, to be held with `async with`."""
        loop = asyncio.get_running_loop()
        door = self._doors.get(loop)
        if door is None:
            door = self._doors[loop] = asyncio.Semaphore(self._at_once)
        return door
