"""One statement that is a transaction by itself, in one trip to the server instead of three or four."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy.exc import DBAPIError

from .failures import is_lost_connection, is_lost_race, read_again, spoken

if TYPE_CHECKING:
    from sqlalchemy import CursorResult, Executable, Row
    from sqlalchemy.ext.asyncio import AsyncEngine

    Rows = Sequence[Row[*tuple[Any, ...]]]

T = TypeVar("T")


class Straight:
    """Runs single statements on a caller's engine without BEGIN and COMMIT around them.

    Only where that saves trips: PostgreSQL, where what belongs together can be one statement.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self.engine = engine
        """The engine of the caller's."""
        self.saves = engine.dialect.name == "postgresql"
        """Whether it is any use here."""

    async def change(self, statement: Executable, values: Mapping[str, Any]) -> int | None:
        """Answer how many rows the statement's last part changed, or None where it is to be tried as a transaction.

        Where another writer got in between, or the connection was dead; what is there already is not put there twice.
        """
        return await self._attempt(statement, values, lambda result: result.rowcount)

    async def change_for_rows(self, statement: Executable, values: Mapping[str, Any]) -> Rows | None:
        """Answer the rows of a statement that changes something, or None as `change` does."""
        return await self._attempt(statement, values, lambda result: result.all())

    async def rows(self, statement: Executable, values: Mapping[str, Any]) -> Rows:
        """Answer the statement's rows."""
        return await spoken(read_again(lambda: self._run(statement, values, lambda result: result.all())))

    async def _attempt(
        self, statement: Executable, values: Mapping[str, Any], read: Callable[[CursorResult[Any]], T]
    ) -> T | None:
        async def attempt() -> T | None:
            try:
                return await self._run(statement, values, read)
            except DBAPIError as error:
                if is_lost_race(error) or is_lost_connection(error):
                    return None
                raise

        return await spoken(attempt())

    async def _run(self, statement: Executable, values: Mapping[str, Any], read: Callable[[CursorResult[Any]], T]) -> T:
        async with self.engine.connect() as conn:
            # SQLAlchemy puts the level back when the connection goes back.
            await conn.execution_options(isolation_level="AUTOCOMMIT")
            return read(await conn.execute(statement, values))
