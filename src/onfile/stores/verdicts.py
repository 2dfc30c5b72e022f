"""What a write comes to, decided from the record that stands: pure, so that every store decides alike."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..errors import WriteRefused
from ..records import MemoryRecord

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from ..provider import StoreMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one write does."""

    record: MemoryRecord
    """What stands afterwards."""
    unchanged: bool = False
    """True when nothing is written."""
    replaced: str | None = None
    """The text that goes, or None."""


def judge_write(
    *,
    standing: MemoryRecord | None,
    request: StoreMemory,
    own: bool,
    now: datetime,
    new_id: Callable[[], str],
) -> Step:
    """Decide what a write does to the record at its scope and key.

    Args:
        standing: The record there, or None.
        request: What is to be kept.
        own: Whether the scope is the very one of the request's actor.
        now: When the write happens.
        new_id: Makes the id of a record that is new.

    Raises:
        WriteRefused: An agent wrote above its own actor's scope, or over a person's statement.
    """
    by_agent = request.origin.author != "human"
    if by_agent and not own:
        reason = f"an agent records facts at its own actor's scope only, and [{request.scope}] is not that"
        raise WriteRefused(reason)
    if standing is None:
        record = MemoryRecord(
            id=new_id(), key=request.key, text=request.text, scope=request.scope, origin=request.origin, updated_at=now
        )
        return Step(record=record)
    stated = standing.origin.author == "human"
    same = standing.text == request.text
    if same and (stated or by_agent):
        return Step(record=standing, unchanged=True)
    if by_agent and stated:
        reason = (
            f"a person stated '{standing.key}' at [{standing.scope}] and their note stands; "
            "tell the user that theirs differs instead of replacing it"
        )
        raise WriteRefused(reason)
    # A person who writes what the agent concluded makes it their own statement.
    record = replace(standing, text=request.text, origin=request.origin, updated_at=now)
    return Step(record=record, replaced=None if same else standing.text)
