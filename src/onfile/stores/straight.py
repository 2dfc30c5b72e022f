"""One statement that is a transaction by itself, in one trip to the server instead of three or four."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy.exc import DBAPIError

from ..stores.failures import is_lost_connection, is_lost_race, read_again, spoken

if TYPE_CHECKING:
    from sqlalchemy import Executable, Row
    from sqlalchemy.ext.asyncio import AsyncEngine


class Straight:
    """Runs single statements on a caller's engine without BEGIN and COMMIT around them.

    Only where that saves trips: PostgreSQL, where also a checkpoint and its message are one statement.
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

        async def changing() -> int | None:
            async with self.engine.connect() as conn:
                # SQLAlchemy puts the level back when the connection goes back.
                await conn.execution_options(isolation_level="AUTOCOMMIT")
                try:
                    return (await conn.execute(statement, values)).rowcount
                except DBAPIError as error:
                    if is_lost_race(error) or is_lost_connection(error):
                        return None
                    raise

        return await spoken(changing())

    async def rows(self, statement: Executable, values: Mapping[str, Any]) -> Sequence[Row[*tuple[Any, ...]]]:
        """Answer the statement's rows."""

        async def reading() -> Sequence[Row[*tuple[Any, ...]]]:
            async with self.engine.connect() as conn:
                await conn.execution_options(isolation_level="AUTOCOMMIT")
                return (await conn.execute(statement, values)).all()

        return await spoken(read_again(reading))
