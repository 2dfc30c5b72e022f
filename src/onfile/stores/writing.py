"""One write, from its receipt to its row, as the steps of one transaction."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ..errors import WriteRefused
from ..ids import new_id
from ..writes import Step, forgotten_since, judge_write, key_identity, receipt_digest
from . import statements
from .derived import halfvec_dropped, is_to_prune, pruning
from .erasures import with_id
from .one_trip import MEET, changed_fact, new_fact
from .rows import row_of, stored_of
from .steps import Ask, carry_out

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from ..provider import StoreMemory
    from ..records import MemoryRecord
    from .keeping import Keeper
    from .rows import StoredMemory
    from .steps import Steps
    from .transactions import Database, Transaction


class _ExpiredStands(Exception):  # noqa: N818  # no error: it never leaves this module
    """What stands at the scope and key is shown to nobody any more, and has to be deleted before the write."""

    def __init__(self, id_: str) -> None:
        super().__init__()
        self.id = id_


async def write(database: Database, request: StoreMemory, *, keeper: Keeper) -> Step:
    """Do the write as one transaction.

    Raises:
        WriteRefused: The fact may not be kept there, or was kept and has been forgotten since.
    """
    scopes = [request.scope]
    # Only what can be told from its repetition: the one statement may have been done when its connection died.
    if request.idempotency_key is not None and database.one_trip:
        step = await _new(database, request, keeper)
        if step is not None:
            return step

    def begin() -> Steps[Step]:
        return _steps(request, keeper, one_trip=database.one_trip)

    try:
        return await database.play(begin, scopes=scopes)
    except _ExpiredStands:
        # Deleting reaches journals too, and is rare here: so it is no part of the steps.
        return await database.transact(lambda transaction: _over_expired(transaction, begin, keeper), scopes=scopes)


async def _over_expired(transaction: Transaction, begin: Callable[[], Steps[Step]], keeper: Keeper) -> Step:
    try:
        # Looked at anew: a person may have taken the expiry back meanwhile, and then their fact stands.
        return await carry_out(transaction, begin())
    except _ExpiredStands as expired:
        await keeper.erase(transaction, with_id(expired.id), "expired")  # held since it was looked at
    return await carry_out(transaction, begin())


async def _new(database: Database, request: StoreMemory, keeper: Keeper) -> Step | None:
    """Keep a fact of which neither the key nor the call was there before, in one trip; None where it was."""
    now = keeper.now()
    try:
        step = judge_write(standing=None, request=request, now=now, new_id=_id_at(now))
    except WriteRefused:
        return None  # it may be a retry of what was not refused
    values = {f"new_{name}": value for name, value in row_of(step.record, created_at=now).items()}
    digest = {"new_digest": _digest_of(request, values["new_key_identity"])}
    statement = new_fact(history=keeper.ledger.history)
    rows = await database.change_at_once(statement, values | digest, scopes=[request.scope])
    if not rows:
        return None
    [(revision,)] = rows
    if is_to_prune(revision):
        prune = partial(pruning, request.scope, revision)
        await database.play(prune, scopes=[request.scope])
    return step


def _digest_of(request: StoreMemory, identity: str) -> str | None:
    key = request.idempotency_key
    return None if key is None else receipt_digest(idempotency_key=key, scope=request.scope, identity=identity)


def _steps(request: StoreMemory, keeper: Keeper, *, one_trip: bool) -> Steps[Step]:
    at = {"at_scope": request.scope, "at_identity": key_identity(request.key)}
    digest = _digest_of(request, at["at_identity"])
    retried, found = yield from (_met(at, digest) if one_trip else _looked_up(at, digest))
    now = keeper.now()
    standing = None if found is None else found.record
    if found is not None and found.expires_at is not None and found.expires_at <= now:
        raise _ExpiredStands(found.record.id)
    if retried:
        if standing is None:
            raise WriteRefused(forgotten_since(scope=request.scope))
        return Step(record=standing, unchanged=True)
    step = judge_write(standing=standing, request=request, now=now, new_id=_id_at(now))
    if one_trip and standing is not None and not step.unchanged:
        yield from _change(step.record, digest, keeper)
        return step
    if digest is not None:
        yield Ask(statement=statements.SIGN, values={"digest": digest, "created_at": now})
    if not step.unchanged:
        yield from keeper.keep(standing, step.record)
    return step


def _looked_up(at: dict[str, str], digest: str | None) -> Steps[tuple[bool, StoredMemory | None]]:
    """Whether the write was made before, and what stands."""
    retried = False
    if digest is not None:
        # Before the standing row, never after it: a server shows each statement what is committed
        # by then, and a receipt without its row would look like a fact that was forgotten. A
        # receipt that comes in between makes `SIGN` fail, and all of this is run again.
        retried = bool((yield Ask(statement=statements.RECEIPT, values={"of_digest": digest})).rows)
    rows = (yield Ask(statement=statements.STANDING, values=at)).rows
    return retried, stored_of(rows[0]) if rows else None


def _met(at: dict[str, str], digest: str | None) -> Steps[tuple[bool, StoredMemory | None]]:
    """The same in one trip."""
    [(retried, *standing)] = (yield Ask(statement=MEET, values={**at, "new_digest": digest})).rows
    return retried, None if standing[0] is None else stored_of(standing)


def _change(record: MemoryRecord, digest: str | None, keeper: Keeper) -> Steps[None]:
    """What `SIGN` and `Keeper.keep` do where something stands, in one trip."""
    row = row_of(record, created_at=record.updated_at)
    values: dict[str, Any] = {name: row[name.removeprefix("new_")] for name in statements.REPLACED}
    if digest is not None:
        values["new_digest"] = digest
    statement = changed_fact(signed=digest is not None, history=keeper.ledger.history)
    answer = yield Ask(statement=statement, values={"of_id": record.id, **values}, removes_text=True)
    yield from halfvec_dropped(record.id)
    [(revision,)] = answer.rows
    if is_to_prune(revision):
        yield from pruning(record.scope, revision)


def _id_at(now: datetime) -> Callable[[], str]:
    return lambda: new_id(now_ms=max(0, int(now.timestamp() * 1000)))
