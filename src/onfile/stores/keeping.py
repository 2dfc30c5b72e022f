"""Writing one row and all that goes with it, within a transaction that is under way."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from . import statements
from .derived import text_replaced, text_written
from .erasures import erase_where
from .rows import row_of
from .steps import Ask

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import ColumnElement

    from ..records import MemoryRecord
    from .history import Deletion, Ledger
    from .steps import Steps
    from .transactions import Transaction


def utc_now() -> datetime:
    """Answer the time, timezone-aware UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeper:
    """A store's clock and ledger, and what it does to rows with them."""

    clock: Callable[[], datetime]
    ledger: Ledger

    def now(self) -> datetime:
        """Read the store's clock.

        Raises:
            ValueError: It returned a time without a timezone.
        """
        now = self.clock()
        if now.tzinfo is None:
            msg = "the clock of SqlMemoryProvider returned a time without a timezone; return aware UTC times"
            raise ValueError(msg)
        return now.astimezone(UTC)

    def keep(self, standing: MemoryRecord | None, record: MemoryRecord) -> Steps[None]:
        """Insert a record, or put its new text in place of what stood."""
        row = row_of(record, created_at=record.updated_at)
        if standing is None:
            yield Ask(statement=statements.KEEP, values=row)
            yield from text_written([record])
        else:
            new = {f"new_{name}": value for name, value in row.items()}
            values = {"of_id": record.id, **{name: new[name] for name in statements.REPLACED}}
            yield Ask(statement=statements.REPLACE_TEXT, values=values, removes_text=True)
            yield from text_replaced(record)
        change = "written" if standing is None else "replaced"
        yield from self.ledger.changed(record, change, at=record.updated_at)

    async def erase(self, transaction: Transaction, condition: ColumnElement[bool], deletion: Deletion) -> int:
        """Delete the rows that meet the condition, with all that was made of them, and count them."""
        return await erase_where(transaction, condition, deletion=deletion, ledger=self.ledger, now=self.now())
