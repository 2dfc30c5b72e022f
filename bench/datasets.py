"""The selection data sets: facts at scopes, questions, and which keys answer each piece of evidence."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

SETS = ("locomo_S", "locomo_L", "locomo_XL", "prefeval", "madial_zh_S", "madial_en_S")
DEFAULT_DATA = Path(__file__).parents[2] / "shared" / "data"


class Fact(NamedTuple):
    """One fact of a data set."""

    scope: str
    key: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One question, and for each piece of evidence the keys that cover it."""

    id: str
    scopes: Sequence[str]
    text: str
    evidence: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """Facts and the questions about them."""

    name: str
    facts: Sequence[Fact]
    queries: Sequence[Query]


def load(name: str, *, folder: Path = DEFAULT_DATA, half: str = "dev") -> DataSet:
    """Read NAME.facts.json and NAME.HALF.json."""
    queries = json.loads((folder / f"{name}.{half}.json").read_text("utf-8"))["queries"]
    return DataSet(
        name=name,
        facts=load_facts(folder / f"{name}.facts.json"),
        queries=[Query(id=q["id"], scopes=q["scopes"], text=q["q"], evidence=q["ev"]) for q in queries],
    )


def load_facts(path: Path) -> Sequence[Fact]:
    """Read one NAME.facts.json; its times are UTC."""
    facts = json.loads(path.read_text("utf-8"))["facts"]
    return [Fact(s, k, t, datetime.fromisoformat(at).replace(tzinfo=UTC)) for s, k, t, at in facts]


def recall_at(keys: Sequence[str], query: Query, count: int) -> float:
    """The share of the evidence that the first keys cover, in percent."""
    first = set(keys[:count])
    return 100 * sum(not first.isdisjoint(covering) for covering in query.evidence) / len(query.evidence)


def reciprocal_rank(keys: Sequence[str], query: Query) -> float:
    """100 over the place of the first key that covers any evidence; 0 without one."""
    wanted = {key for covering in query.evidence for key in covering}
    return next((100 / place for place, key in enumerate(keys, 1) if key in wanted), 0.0)
