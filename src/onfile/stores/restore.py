"""An operator's restore: facts put back exactly as an export carried them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ..errors import OnfileError, WriteRefused
from ..text import keepable_token
from ..writes import key_identity, why_unkeepable
from . import statements
from .derived import after_text_removed, text_written
from .rows import row_of
from .steps import carry_out

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from sqlalchemy.ext.asyncio import AsyncConnection

    from .history import Ledger
    from .rows import StoredMemory
    from .transactions import Transaction

_BATCH = 250

OnConflict = Literal["stop", "skip", "replace"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreReport:
    """What a restore came to, in facts."""

    inserted: int
    replaced: int
    skipped: int


class RestoreConflict(OnfileError):  # noqa: N818  # a conflict is what it is, and WriteRefused has no suffix either
    """Some facts of a restore are on file already, by id or by scope and key; nothing was written.

    `positions` counts from 0 and names each fact of the restore that conflicts.
    """

    def __init__(self, positions: Sequence[int]) -> None:
        super().__init__(
            f"{len(positions)} of the facts to restore are on file already, by id or by scope and key; "
            "nothing was written: restore with on_conflict='skip' or 'replace'"
        )
        self.positions = tuple(positions)


class _Held:
    """Which ids and which scopes with keys are taken, by rows or by earlier facts of the same restore."""

    def __init__(self) -> None:
        self._at: dict[str, tuple[str, str]] = {}
        self._by: dict[tuple[str, str], str] = {}

    def take(self, id_: str, at: tuple[str, str]) -> None:
        self._at[id_] = at
        self._by[at] = id_

    def in_the_way(self, id_: str, at: tuple[str, str]) -> list[str]:
        """The ids of the records that must go before this one can stand, at most two."""
        same_id = [id_] if id_ in self._at else []
        same_place = self._by.get(at)
        return same_id if same_place is None or same_place == id_ else [*same_id, same_place]

    def release(self, id_: str) -> str:
        """Free an id and its place; answer the scope that it was at."""
        at = self._at.pop(id_)
        del self._by[at]
        return at[0]


async def put_back(
    transaction: Transaction,
    memories: Sequence[StoredMemory],
    *,
    on_conflict: OnConflict,
    ledger: Ledger,
    now: datetime,
) -> RestoreReport:
    """Restore within one transaction; a later fact of one restore conflicts with an earlier one too."""
    for position, memory in enumerate(memories):
        _check(position, memory)
    held = _Held()
    conflicts: list[int] = []
    replaced = inserted = 0
    for start, batch in _batches(memories):
        await _look_up(transaction.conn, batch, held)
        kept: dict[str, StoredMemory] = {}
        removed: dict[str, str] = {}
        for position, memory in enumerate(batch, start):
            record = memory.record
            at = (record.scope, key_identity(record.key))
            in_the_way = held.in_the_way(record.id, at)
            if in_the_way:
                conflicts.append(position)
                if on_conflict != "replace":
                    continue
                replaced += 1
            else:
                inserted += 1
            for id_ in in_the_way:
                scope = held.release(id_)
                if kept.pop(id_, None) is None:
                    removed[id_] = scope
            held.take(record.id, at)
            kept[record.id] = memory
        if on_conflict == "stop" and conflicts:
            continue  # every position is reported, so the rest is looked up but not written
        gone = [id_ for id_ in removed if id_ not in kept]
        await _apply(transaction, removed, list(kept.values()))
        if removed:
            await ledger.replaced(transaction.conn, list(removed), gone, at=now)
        for memory in kept.values():
            await carry_out(transaction, ledger.changed(memory.record, "written", at=now))
    if on_conflict == "stop" and conflicts:
        raise RestoreConflict(conflicts)
    return RestoreReport(inserted=inserted, replaced=replaced, skipped=len(conflicts) if on_conflict == "skip" else 0)


def _batches(memories: Sequence[StoredMemory]) -> Iterator[tuple[int, Sequence[StoredMemory]]]:
    for start in range(0, len(memories), _BATCH):
        yield start, memories[start : start + _BATCH]


async def _look_up(conn: AsyncConnection, batch: Sequence[StoredMemory], held: _Held) -> None:
    at = [(memory.record.scope, key_identity(memory.record.key)) for memory in batch]
    wanted = {
        "ids": [memory.record.id for memory in batch],
        "scopes": list({scope for scope, _ in at}),
        "identities": list({identity for _, identity in at}),
    }
    for id_, scope, identity in (await conn.execute(statements.HELD, wanted)).all():
        held.take(id_, (scope, identity))


async def _apply(transaction: Transaction, removed: dict[str, str], kept: list[StoredMemory]) -> None:
    if removed:
        await transaction.conn.execute(statements.REMOVE, {"ids": list(removed)})
        await after_text_removed(transaction, list(removed.items()))
        transaction.removed_text = True
    if kept:
        rows = [row_of(memory.record, created_at=memory.created_at, expires_at=memory.expires_at) for memory in kept]
        await transaction.conn.execute(statements.KEEP, rows)
        await carry_out(transaction, text_written([memory.record for memory in kept]))


def _check(position: int, memory: StoredMemory) -> None:
    record = memory.record
    reason = why_unkeepable(scope=record.scope, key=record.key, text=record.text, origin=record.origin)
    if reason is None and not keepable_token(record.id):
        reason = "the id is empty, longer than 255 characters, or holds a character that no database can keep"
    times = (record.updated_at, memory.created_at, memory.expires_at)
    if reason is None and any(time is not None and time.tzinfo is None for time in times):
        reason = "a time has no timezone; give every time as UTC or with its offset"
    if reason is not None:
        reason = f"fact {position}: {reason}"
        raise WriteRefused(reason)
