"""PostgreSQL, MySQL and MariaDB: writers that queue at the row, and do it again when they lost a race."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from .crowd import Crowd
from .failures import is_lost_connection, is_lost_race, read_again, spoken
from .gaps import fill
from .row_security import guard_new_tables
from .sight import LOCK_SETUP, SEE_EVERYTHING, SETUP_LOCK, see
from .steps import carry_out
from .straight import Straight
from .transactions import Transaction

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from sqlalchemy import Executable, MetaData
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from .steps import Steps
    from .transactions import Scopes

T = TypeVar("T")

_ATTEMPTS = 12
_READS_AT_ONCE = 8
_LONGEST_PAUSE = 0.5
_SETUP_SECONDS = 60


class ServerDatabase:
    """A database server behind a caller's engine.

    Work that finds its connection dead, as all of a pool's are after the server was started anew, is
    begun once more on a new one. That costs nothing until it happens; `pool_pre_ping` would make each
    list take a third longer.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._straight = Straight(engine)
        self._crowd = Crowd(_READS_AT_ONCE)

    async def read(self, work: Callable[[AsyncConnection], Awaitable[T]], *, scopes: Scopes = ()) -> T:
        """Run the work on a connection of its own and hand the connection back."""
        del scopes

        async def reading() -> T:
            async with self._engine.connect() as conn:
                return await work(conn)

        async with self._crowd.door():
            return await spoken(read_again(reading))

    async def transact(self, work: Callable[[Transaction], Awaitable[T]], *, scopes: Scopes = ()) -> T:
        """Run the work as one transaction, from the start again where another writer got in between."""
        del scopes
        return await spoken(self._transact(work))

    @property
    def one_trip(self) -> bool:
        """Whether one statement can do here what takes several elsewhere."""
        return False

    async def change_at_once(
        self, statement: Executable, values: Mapping[str, Any], *, scopes: Scopes = ()
    ) -> Sequence[Sequence[Any]] | None:
        """Run one statement as a transaction by itself, without BEGIN and COMMIT."""
        del scopes
        return await self._straight.change_for_rows(statement, values)

    async def play(self, steps: Callable[[], Steps[T]], *, scopes: Scopes = ()) -> T:
        """Run the steps as one transaction, from the start again where another writer got in between."""
        return await self.transact(lambda transaction: carry_out(transaction, steps()), scopes=scopes)

    async def _transact(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        attempt, done, reconnected = 0, False, False

        async def noted(transaction: Transaction) -> T:
            nonlocal done
            done = False
            result = await work(transaction)
            done = True
            return result

        while True:
            try:
                return await self._once(noted)
            except DBAPIError as error:
                if is_lost_connection(error):
                    # Once the work is done the commit may have gone through: to do it again could be to do it twice.
                    if done or reconnected:
                        raise
                    reconnected = True
                    continue
                attempt += 1
                if attempt == _ATTEMPTS or not is_lost_race(error):
                    raise
            # The other writer is done by now or soon; a little chance keeps losers from meeting again.
            await asyncio.sleep(min(0.005 * 2**attempt, _LONGEST_PAUSE) * random.random())  # noqa: S311  # spreads retries, guards nothing

    async def _once(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        async with self._engine.connect() as conn:
            # Whatever the engine's own level: AUTOCOMMIT would be no transaction, and under REPEATABLE
            # READ a writer that waited would not see what the one before it committed. SQLAlchemy
            # puts the level back when the connection goes back.
            await conn.execution_options(isolation_level="READ COMMITTED")
            async with conn.begin():
                return await work(Transaction(conn=conn))

    async def settle(self) -> None:
        """Nothing is left to do: a server's dead rows go with its own vacuum or purge."""


class PostgresDatabase(ServerDatabase):
    """PostgreSQL, which can itself hold a transaction to its scopes."""

    def __init__(self, engine: AsyncEngine, *, row_level_security: bool = False) -> None:
        super().__init__(engine)
        self._row_level_security = row_level_security

    @property
    def one_trip(self) -> bool:
        """Whether one statement can do what takes several elsewhere: not where the scopes must be set before it."""
        return self._straight.saves and not self._row_level_security

    async def read(self, work: Callable[[AsyncConnection], Awaitable[T]], *, scopes: Scopes = ()) -> T:
        """Run the work on a connection of its own, held to the scopes, and hand the connection back."""
        if not (self._row_level_security and scopes):
            return await super().read(work)

        async def held(conn: AsyncConnection) -> T:
            # One transaction whatever the engine's level: under AUTOCOMMIT the scopes would be forgotten
            # as soon as they are set.
            await conn.execution_options(isolation_level="READ COMMITTED")
            await see(conn, scopes)
            return await work(conn)

        return await super().read(held)

    async def transact(self, work: Callable[[Transaction], Awaitable[T]], *, scopes: Scopes = ()) -> T:
        """Run the work as one transaction held to the scopes."""
        if not (self._row_level_security and scopes):
            return await super().transact(work)

        async def held(transaction: Transaction) -> T:
            await see(transaction.conn, scopes)
            return await work(transaction)

        return await super().transact(held)

    async def create(self, metadata: MetaData) -> None:
        """Make what is missing of the tables, one process at a time, as closely guarded as what is there."""

        async def make(transaction: Transaction) -> None:
            conn = transaction.conn
            await conn.execute(LOCK_SETUP)
            # An upgrade may have to move what is in the tables, and row-level security holds their owner too.
            await conn.execute(text(SEE_EVERYTHING))
            await conn.run_sync(fill, metadata)
            await conn.run_sync(guard_new_tables)

        await self.transact(make)


class MysqlDatabase(ServerDatabase):
    """MySQL and MariaDB."""

    async def _once(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        async with self._engine.connect() as conn, conn.begin():
            # The level of the next transaction only, so that nothing has to be put back (which
            # SQLAlchemy cannot do for an AUTOCOMMIT engine here). Under the default, REPEATABLE READ,
            # writers of new keys lock the gaps between them and fail in each other's arms.
            await conn.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            await conn.exec_driver_sql("START TRANSACTION")
            try:
                return await work(Transaction(conn=conn))
            except BaseException:
                # An AUTOCOMMIT engine may be told not to roll back.
                if not conn.invalidated:
                    with contextlib.suppress(SQLAlchemyError):
                        await conn.exec_driver_sql("ROLLBACK")
                raise

    async def create(self, metadata: MetaData) -> None:
        """Make what is missing of the tables, one process at a time."""

        async def make() -> None:
            async with self._engine.connect() as conn:
                # A lock of the session: DDL commits, so one of the transaction would not last.
                name = {"lock": f"onfile setup {SETUP_LOCK}", "seconds": _SETUP_SECONDS}
                await conn.execute(text("SELECT GET_LOCK(:lock, :seconds)"), name)
                try:
                    await conn.run_sync(fill, metadata)
                    await conn.commit()
                finally:
                    await conn.execute(text("SELECT RELEASE_LOCK(:lock)"), {"lock": name["lock"]})

        await spoken(make())
