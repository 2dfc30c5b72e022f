"""A store inside somebody else's transaction: what it does is kept with theirs, or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from .gaps import fill
from .sight import see
from .steps import carry_out

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

    from sqlalchemy import Executable, MetaData
    from sqlalchemy.ext.asyncio import AsyncConnection

    from ..provider import MemoryProvider
    from .steps import Steps
    from .transactions import Scopes, Transaction

T = TypeVar("T")


@runtime_checkable
class JoiningProvider(Protocol):
    """Implement these two so that a fact and a run's checkpoint are one transaction.

    A journal on the same engine asks for it; a provider without them is written to by its own
    transaction, and a repeated write is then caught by its idempotency key.
    """

    @property
    def engine(self) -> Any:
        """The SQLAlchemy engine that facts are kept through; compared by identity with the journal's."""
        ...

    def within(self, transaction: Transaction) -> MemoryProvider:
        """Answer the same provider on the connection `transaction.conn`, which it must not commit.

        What another writer got in the way of must be raised, not tried again: the whole
        transaction is, from its start.
        """
        ...


@runtime_checkable
class HoldingProvider(Protocol):
    """Implement this besides the two of `JoiningProvider`, so that no journal keeps what is just being forgotten."""

    async def hold(self, ids: Sequence[str], *, scopes: Sequence[str]) -> Collection[str]:
        """Answer which of these facts are still there, and keep them from being deleted until the transaction ends.

        A fact whose deletion is under way is waited for.
        """
        ...


class JoinedDatabase:
    """The database as one open transaction sees it.

    Where row-level security holds it to scopes, the transaction stays held to the last ones asked
    for: what its owner does after that with facts must set its own.
    """

    def __init__(self, transaction: Transaction, *, row_level_security: bool = False) -> None:
        self._transaction = transaction
        self._row_level_security = row_level_security

    async def read(self, work: Callable[[AsyncConnection], Awaitable[T]], *, scopes: Scopes = ()) -> T:
        """Run the work on the transaction's connection."""
        if self._row_level_security:
            await see(self._transaction.conn, scopes)
        return await work(self._transaction.conn)

    async def transact(self, work: Callable[[Transaction], Awaitable[T]], *, scopes: Scopes = ()) -> T:
        """Run the work as a part of the transaction."""
        if self._row_level_security:
            await see(self._transaction.conn, scopes)
        return await work(self._transaction)

    @property
    def one_trip(self) -> bool:
        """Whether one statement can do what takes several elsewhere: on PostgreSQL, where nobody holds it to scopes."""
        return self._transaction.conn.dialect.name == "postgresql" and not self._row_level_security

    async def change_at_once(
        self, statement: Executable, values: Mapping[str, Any], *, scopes: Scopes = ()
    ) -> Sequence[Sequence[Any]] | None:
        """Run one statement as a part of the transaction, and answer its rows."""

        async def work(transaction: Transaction) -> Sequence[Sequence[Any]]:
            return (await transaction.conn.execute(statement, values)).all()

        return await self.transact(work, scopes=scopes)

    async def play(self, steps: Callable[[], Steps[T]], *, scopes: Scopes = ()) -> T:
        """Run the steps as a part of the transaction."""
        return await self.transact(lambda transaction: carry_out(transaction, steps()), scopes=scopes)

    async def create(self, metadata: MetaData) -> None:
        """Make what is missing of the tables, with the transaction."""
        await self._transaction.conn.run_sync(fill, metadata)

    async def settle(self) -> None:
        """Leave to the transaction's owner what is to be done after it."""
