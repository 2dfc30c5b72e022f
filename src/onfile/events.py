"""Events: what happened, in counts. None carries a key or a fact."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

PREFIX = "aviary:agent:"
RESOLVED = f"{PREFIX}memory.resolved"
WRITTEN = f"{PREFIX}memory.written"
FORGOTTEN = f"{PREFIX}memory.forgotten"
PUBLISHED = f"{PREFIX}memory.published"
PINNED = f"{PREFIX}memory.pinned"
UNAVAILABLE = f"{PREFIX}memory.unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened, for dashboards and alerts."""

    name: str
    """Such as `aviary:agent:memory.resolved`."""
    payload: Mapping[str, Any]
    """Counts, ids of runs and scope tokens, in snake_case; read-only."""


EventCallback = Callable[[Event], Awaitable[None] | None]


def event(name: str, **payload: Any) -> Event:
    """Build an event whose payload cannot be changed by the callbacks that share it."""
    return Event(name=name, payload=MappingProxyType(payload))


async def emit(happened: Event, callback: EventCallback | None) -> None:
    """Hand an event to a callback; one that raises is logged without content and changes nothing."""
    if callback is None:
        return
    try:
        answer = callback(happened)
        if inspect.isawaitable(answer):
            await answer
    except Exception as error:  # noqa: BLE001  # an observer must not be able to fail the observed
        import logging  # only where something is wrong: it is a tenth of `import onfile`

        # Only the type, no traceback: the error of a callback may quote what it was given.
        logging.getLogger("onfile").error(  # noqa: TRY400  # see above
            "the callback for %s raised %s", happened.name, type(error).__name__
        )
