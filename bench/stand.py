"""An onfile store filled for a bench, through its own restore and reindex."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.datasets import Fact
from onfile.ids import new_id
from onfile.records import Actor, MemoryOrigin, MemoryRecord
from onfile.scopes import ScopeContext
from onfile.stores import SqlMemoryProvider, StoredMemory

RESULTS = Path(__file__).parent / "results"
CTX = ScopeContext(actor=Actor(id="bench"))
_AT_ONCE = 5_000


async def fill(provider: SqlMemoryProvider, facts: Sequence[Fact], *, embed: bool) -> None:
    """Set the store up, put the facts in and give each its vector."""
    await provider.setup()
    origin = MemoryOrigin(author="human")
    for start in range(0, len(facts), _AT_ONCE):
        some = [
            StoredMemory(
                record=MemoryRecord(
                    id=new_id(now_ms=start + place),
                    key=fact.key,
                    text=fact.text,
                    scope=fact.scope,
                    origin=origin,
                    updated_at=fact.at,
                ),
                created_at=fact.at,
            )
            for place, fact in enumerate(facts[start : start + _AT_ONCE])
        ]
        await provider.restore(some)
    if embed:
        async for _ in provider.reindex():
            pass


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which that share lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def machine() -> dict[str, Any]:
    """What a reader must know to compare numbers."""
    import os
    import platform
    import sqlite3

    import numpy
    import sqlalchemy

    processors = Path("/proc/cpuinfo")
    lines = processors.read_text("utf-8").splitlines() if processors.exists() else []
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "sqlalchemy": sqlalchemy.__version__,
        "numpy": numpy.__version__,
        "load": round(os.getloadavg()[0], 1),
    }
