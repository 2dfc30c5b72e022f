"""One clause of the provider contract: a sentence, the capability it is about, and the code that tries it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import OnfileError
from ..provider import MemoryProvider, can_pin, can_search, can_write, guards_writes

Capability = Literal["list", "forget", "write", "report", "search", "pin"]
"""`list` and `forget` are required. `report` is claimed by the class attribute `guards_writes = True`."""

Run = Callable[[Any], Awaitable[None]]
"""Given a fresh provider, raises `ClauseFailed` when the promise is broken."""


class ClauseFailed(OnfileError):  # noqa: N818  # named for what happened, as WriteRefused is
    """A provider broke a promise of the contract; the message says which, in a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """One promise that every provider keeps which claims its capability."""

    name: str
    """The promise as a sentence."""
    capability: Capability
    needs: tuple[Capability, ...]
    """All that the provider must claim for the clause to be tried, `capability` among them."""
    run: Run

    def __str__(self) -> str:
        return self.name


def clause(
    clauses: list[Clause], capability: Capability, *, needs: tuple[Capability, ...] = ("write",)
) -> Callable[[Run], Run]:
    """Add the decorated function to `clauses`, in the order of the file; its name is its sentence.

    The name starts with `_`, because nobody calls a clause by its name.

    Args:
        clauses: The list of the file.
        capability: What the promise is about.
        needs: What else the provider must claim: mostly `write`, to put facts on file first.
    """

    def add(run: Run) -> Run:
        name = run.__name__.replace("_", " ").strip()
        clauses.append(Clause(name=name, capability=capability, needs=(capability, *needs), run=run))
        return run

    return add


def expect(condition: bool, sentence: str) -> None:  # noqa: FBT001  # reads as the assertion it is
    """Raise `ClauseFailed` with the sentence unless the condition holds, also under `python -O`."""
    if not condition:
        raise ClauseFailed(sentence)


def missing_capability(clause: Clause, provider: MemoryProvider) -> Capability | None:
    """Answer the first capability that the clause needs and the provider does not claim, or None."""
    claimed: dict[Capability, bool] = {
        "list": True,
        "forget": True,
        "write": can_write(provider),
        "report": guards_writes(provider),
        "search": can_search(provider),
        "pin": can_pin(provider),
    }
    return next((capability for capability in clause.needs if not claimed[capability]), None)
