"""What the store asks of a database: to read, and to do several things or none of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from sqlalchemy import Executable, MetaData
    from sqlalchemy.ext.asyncio import AsyncConnection

    from .steps import Steps

T = TypeVar("T")


class Reach(Enum):
    """How far an operator's act reaches: beyond any list of scopes."""

    EVERY_SCOPE = "*"


EVERY_SCOPE: Final = Reach.EVERY_SCOPE
"""What an operator's act says instead of its scopes. No text of a scope can be mistaken for it."""

Scopes = Sequence[str] | Literal[Reach.EVERY_SCOPE]
"""The scopes whose rows a transaction is about."""


@dataclass(slots=True, kw_only=True)
class Transaction:
    """One transaction under way."""

    conn: AsyncConnection
    removed_text: bool = False
    """Set by the work when it deleted or replaced a text, whose bytes must then leave the files."""
    deleted_fact: bool = False
    """Set by the work when a fact is gone, key and all: then nothing of it may be left anywhere in a file."""


class Database(Protocol):
    """How one kind of database does what every kind must do alike.

    `scopes` are for a database that itself holds a transaction to them, by row-level security:
    there work that names none sees no fact. Every other database leaves them to the statements.
    """

    async def read(self, work: Callable[[AsyncConnection], Awaitable[T]], *, scopes: Scopes = ()) -> T:
        """Run the work on a connection of its own and hand the connection back."""
        ...

    async def transact(self, work: Callable[[Transaction], Awaitable[T]], *, scopes: Scopes = ()) -> T:
        """Run the work as one transaction: all of it is kept, or none.

        Where another writer got in between, the work is run again from the start.
        """
        ...

    @property
    def one_trip(self) -> bool:
        """Whether `change_at_once` is any use: whether one statement can do here what takes several elsewhere."""
        ...

    async def change_at_once(
        self, statement: Executable, values: Mapping[str, Any], *, scopes: Scopes = ()
    ) -> Sequence[Sequence[Any]] | None:
        """Run one statement as a transaction by itself, and answer its rows.

        None where another writer got in between, or the connection was dead, so that it may have been done.
        """
        ...

    async def play(self, steps: Callable[[], Steps[T]], *, scopes: Scopes = ()) -> T:
        """Run the steps as one transaction: as `transact`, and quicker where the database is in this process."""
        ...

    async def create(self, metadata: MetaData) -> None:
        """Make what is missing of tables, columns and indexes, whoever else is doing the same."""
        ...

    async def settle(self) -> None:
        """Finish what a transaction left to do after it ended."""
        ...
