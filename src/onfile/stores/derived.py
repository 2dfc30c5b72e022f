"""What is derived from a fact's text and must come and go with it, in the same transaction.

The seam for relevance: the search index and the vectors of `onfile.recall` are written and removed
here, so that a deleted fact leaves nothing behind that was made from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from ..records import MemoryRecord


async def after_text_written(conn: AsyncConnection, records: Sequence[MemoryRecord]) -> None:
    """Index the records' texts, within the transaction that wrote them."""
    del conn, records


async def after_text_removed(conn: AsyncConnection, ids: Sequence[str]) -> None:
    """Remove all that was derived from these records' texts, within the transaction that removed them.

    Also called before `after_text_written` where a text was replaced.
    """
    del conn, ids
