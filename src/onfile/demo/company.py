"""The demo's people, the scopes that apply to them, and how its facts get into a store."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Literal, Protocol

from ..provider import ListMemories, MemoryProvider
from ..records import Actor
from ..scopes import GLOBAL_SCOPE, ScopeContext, actor_scope, check_actor
from ..wire.lines import FactLine, parse_line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from ..records import MemoryRecord
    from ..stores import RestoreReport, StoredMemory

ACTORS = (
    Actor(id="ana", tenant_ref="acme"),
    Actor(id="jonas", tenant_ref="acme"),
    Actor(id="mei", tenant_ref="tallis"),
)
"""A dispatcher in the north, one in the south who writes German, and one at another company."""

_DEPOTS = {"ana": "north", "jonas": "sued"}


class DemoStore(MemoryProvider, Protocol):
    """A store that facts can be put back into, such as `SqlMemoryProvider`."""

    async def restore(
        self, memories: Sequence[StoredMemory], *, on_conflict: Literal["stop", "skip", "replace"] = "stop"
    ) -> RestoreReport:
        """Put facts back as they were, with id, times, pin and origin."""
        ...


def demo_scopes(ctx: ScopeContext) -> list[str]:
    """Answer the actor's own scope, their depot's, their company's, then `global`.

    A host would look the depot up where it keeps its people; anybody whom the demo does not know
    works at none.
    """
    check_actor(ctx.actor)
    tenant, depot = ctx.actor.tenant_ref, _DEPOTS.get(ctx.actor.id)
    own = [] if ctx.shared else [actor_scope(ctx.actor)]
    # The depots are one company's: an actor of the same name at another company works at neither.
    at_depot = [f"depot:{depot}"] if depot is not None and tenant == "acme" else []
    at_tenant = [f"tenant:{tenant}"] if tenant is not None else []
    return [*own, *at_depot, *at_tenant, GLOBAL_SCOPE]


def demo_lines() -> list[FactLine]:
    """Read the demo's facts from the package; the file is one that `onfile import` takes as well."""
    lines = files("onfile.demo").joinpath("facts.jsonl").read_bytes().splitlines()
    return [parse_line(line) for line in lines]


def demo_records() -> list[MemoryRecord]:
    """Answer the demo's facts as records, for a store that takes them from the start."""
    return [record for record, _ in _dated()]


async def load_demo(provider: DemoStore) -> list[Actor]:
    """Put the demo's facts on file unless some are there already, and answer whom to look as.

    What somebody deleted in an earlier session stays deleted.
    """
    from ..stores import StoredMemory  # SQLAlchemy is loaded only where facts go into a database

    scopes = list(dict.fromkeys(line.scope for line in demo_lines()))
    ctx = ScopeContext(actor=ACTORS[0])
    if not await provider.list(ListMemories(scopes=scopes, ctx=ctx)):
        stored = [StoredMemory(record=record, created_at=created_at) for record, created_at in _dated()]
        # Skipped rather than stopped at: a second process may be loading the same at this moment.
        await provider.restore(stored, on_conflict="skip")
    return list(ACTORS)


def _dated() -> list[tuple[MemoryRecord, datetime]]:
    dated: list[tuple[MemoryRecord, datetime]] = []
    for line in demo_lines():
        # The file names every id and time itself, so that the demo is the same on every machine.
        if line.id is None or line.created_at is None:
            msg = "every line of the demo's facts needs an id and a created_at"
            raise ValueError(msg)
        dated.append((line.to_record(new_id=line.id, now=line.created_at), line.created_at))
    return dated
