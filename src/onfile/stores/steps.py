"""What a transaction asks of its database, one statement after another, told apart from how it is asked.

So that the same work is awaited statement by statement on a server, and done in one go in the
driver's thread on SQLite, where each statement would otherwise be handed to that thread and back
while every other writer waits.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sqlalchemy import Executable
    from sqlalchemy.ext.asyncio import AsyncConnection

    from .transactions import Transaction

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One statement and its values; several values for one that is to be run for each."""

    statement: Executable
    values: Mapping[str, Any] | Sequence[Mapping[str, Any]]
    removes_text: bool = False
    """A text goes with it, whose bytes must then leave the files."""
    only_if: Callable[[AsyncConnection], Awaitable[bool]] | None = None
    """Asked of a server first; what asks this is never run on SQLite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a statement answered."""

    rows: Sequence[Sequence[Any]] = ()
    count: int = 0
    """How many rows it changed."""


Steps = Generator[Ask, Answer, T]
"""Work that yields what it asks and is sent the answers. What it raises, it raises before or after, never instead."""

NOTHING = Answer()


async def carry_out(transaction: Transaction, steps: Steps[T]) -> T:
    """Do the work statement by statement, within a transaction that is under way."""
    conn, answer = transaction.conn, None
    while True:
        try:
            ask = next(steps) if answer is None else steps.send(answer)
        except StopIteration as done:
            return done.value
        if ask.only_if is not None and not await ask.only_if(conn):
            answer = NOTHING
            continue
        transaction.removed_text |= ask.removes_text
        result = await conn.execute(ask.statement, ask.values)
        answer = Answer(rows=result.all()) if result.returns_rows else Answer(count=result.rowcount)
