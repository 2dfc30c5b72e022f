"""PostgreSQL, MySQL and MariaDB: writers that queue at the row, and do it again when they lost a race."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from .crowd import Crowd
from .failures import is_lost_race, spoken
from .transactions import Transaction

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sqlalchemy import MetaData
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

T = TypeVar("T")

_ATTEMPTS = 12
_READS_AT_ONCE = 8
_LONGEST_PAUSE = 0.5
_SETUP_SECONDS = 60
# Any number will do, as long as it is always the same: "onfile" in ASCII.
_SETUP_LOCK = 0x6F6E66696C65


class ServerDatabase:
    """A database server behind a caller's engine."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._crowd = Crowd(_READS_AT_ONCE)

    async def read(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """Run the work on a connection of its own and hand the connection back."""

        async def reading() -> T:
            async with self._engine.connect() as conn:
                return await work(conn)

        async with self._crowd.door():
            return await spoken(reading())

    async def transact(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run the work as one transaction, from the start again where another writer got in between."""
        return await spoken(self._transact(work))

    async def _transact(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        attempt = 0
        while True:
            try:
                return await self._once(work)
            except DBAPIError as error:
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
    """PostgreSQL."""

    async def create(self, metadata: MetaData) -> None:
        """Make the tables that are missing, one process at a time."""

        async def make(transaction: Transaction) -> None:
            await transaction.conn.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _SETUP_LOCK})
            await transaction.conn.run_sync(metadata.create_all)

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
        """Make the tables that are missing, one process at a time."""

        async def make() -> None:
            async with self._engine.connect() as conn:
                # A lock of the session: DDL commits, so one of the transaction would not last.
                name = {"lock": f"onfile setup {_SETUP_LOCK}", "seconds": _SETUP_SECONDS}
                await conn.execute(text("SELECT GET_LOCK(:lock, :seconds)"), name)
                try:
                    await conn.run_sync(metadata.create_all)
                    await conn.commit()
                finally:
                    await conn.execute(text("SELECT RELEASE_LOCK(:lock)"), {"lock": name["lock"]})

        await spoken(make())
