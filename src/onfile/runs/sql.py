"""`SqlJournal`: journals and threads in the facts' own database, a fact and its checkpoint in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ..stores.dialects import database_of
from ..stores.journals import journal_metadata, redact_pending
from ..stores.straight import Straight
from ..text import keepable_token
from . import statements
from .journal import (
    ENDED,
    FORMAT,
    Checkpoint,
    Json,
    NewRun,
    Run,
    RunHeld,
    RunStatus,
    RunUnavailable,
    ThreadEntry,
    claimable,
    decode,
    dump_context,
    encode,
    load_context,
)
from .sql_run import SqlRun, read_checkpoints, read_thread

if TYPE_CHECKING:
    from sqlalchemy import Insert
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from ..stores.transactions import Transaction


def utc_now() -> datetime:
    """Answer the time, timezone-aware UTC."""
    return datetime.now(UTC)


class SqlJournal:
    """Keeps journals, threads and signals in SQL; give it the engine of the facts' provider.

    Then a fact and the checkpoint of its tool call are one transaction, so that it is written
    exactly once, whenever the process dies. Call `setup()` once before the first use.
    """

    def __init__(self, engine: AsyncEngine, *, clock: Callable[[], datetime] = utc_now) -> None:
        self._database = database_of(engine, owner="SqlJournal")
        self._straight = Straight(engine)
        self._clock = clock

    async def setup(self) -> None:
        """Make the tables that are missing; safe from several processes at once."""
        await self._database.create(journal_metadata)

    async def aclose(self) -> None:
        """Finish what is under way; the engine stays its owner's."""
        await self._database.settle()

    async def create(self, run: NewRun) -> None:
        """Keep a run that is ready to be claimed."""
        await self._keep(run, statements.NEW_RUN, {"status": "ready", "epoch": 0})

    async def begin(self, run: NewRun, *, owner: str) -> SqlRun:
        """Keep a run that its owner carries at once."""
        held = {"status": "running", "epoch": 1, "owner": owner}
        now = await self._keep(run, statements.NEW_HELD_RUN, held)
        claimed = Run(id=run.id, text=run.text, ctx=run.ctx, status="running", owner=owner, epoch=1, created_at=now)
        return self._held(claimed, [])

    async def claim(self, run_id: str, *, owner: str, lost_after: float | None = None) -> SqlRun:
        """Take a run over, whoever had it, or only from an owner who was not seen."""
        if not keepable_token(run_id):
            claimable(run_id, None)  # as missing as any other id that no run has

        async def work(transaction: Transaction) -> tuple[Run, list[Checkpoint]]:
            conn = transaction.conn
            row = (await conn.execute(statements.HELD_RUN, {"of_run": run_id})).first()
            run = claimable(run_id, None if row is None else run_of(row))
            if lost_after is not None and run.status == "running" and run.owner != owner:
                at = {"of_run": run_id, "lost_after": lost_after}
                if (await conn.execute(statements.IS_LOST, at)).first() is None:
                    msg = f"run {run_id} is carried by {run.owner}, who was seen a moment ago; leave it to them"
                    raise RunHeld(msg)
            return await self._take(transaction, run, owner), await read_checkpoints(conn, run_id)

        return self._held(*await self._database.transact(work))

    async def claim_next(self, *, owner: str, lost_after: float) -> SqlRun | None:
        """Take the oldest run that nobody carries and nobody waits for."""

        async def work(transaction: Transaction) -> tuple[Run, list[Checkpoint]] | None:
            row = (await transaction.conn.execute(statements.NEXT, {"lost_after": lost_after})).first()
            if row is None:
                return None
            run = await self._take(transaction, run_of(row), owner)
            return run, await read_checkpoints(transaction.conn, run.id)

        # Read first: workers that ask twice a second must not keep a SQLite file's writers waiting.
        if not await self.left(lost_after=lost_after, limit=1):
            return None
        taken = await self._database.transact(work)
        return None if taken is None else self._held(*taken)

    async def disown(self, owner: str) -> int:
        """Leave every run that this owner had to whoever comes next."""

        async def work(transaction: Transaction) -> int:
            at = {"of_owner": owner, "now": self._clock()}
            return (await transaction.conn.execute(statements.DISOWN, at)).rowcount

        return await self._database.transact(work)

    async def left(self, *, lost_after: float, limit: int = 100) -> Sequence[Run]:
        """Answer the runs that nobody carries and nobody waits for, oldest first."""

        async def work(conn: AsyncConnection) -> list[Run]:
            at = {"lost_after": lost_after, "at_most": limit}
            return [run_of(row) for row in (await conn.execute(statements.LEFT, at)).all()]

        return await self._database.read(work)

    async def renew(self, run_id: str, *, epoch: int) -> bool:
        """Note that the run's owner is alive."""

        async def work(transaction: Transaction) -> bool:
            at = {"of_run": run_id, "of_epoch": epoch}
            return (await transaction.conn.execute(statements.RENEW, at)).rowcount == 1

        return await self._database.transact(work)

    async def release(self, run_id: str, *, epoch: int) -> None:
        """Leave a run to whoever comes next."""

        async def work(transaction: Transaction) -> None:
            at = {"of_run": run_id, "of_epoch": epoch, "now": self._clock()}
            await transaction.conn.execute(statements.RELEASE, at)

        await self._database.transact(work)

    async def signal(self, run_id: str, name: str, value: Json) -> bool:
        """Answer a wait; the first answer wins."""
        kept = encode(name, value)

        async def work(transaction: Transaction) -> bool:
            conn = transaction.conn
            at = {"of_run": run_id, "of_name": name}
            row = (await conn.execute(statements.HELD_RUN, {"of_run": run_id})).first()
            if row is None or run_of(row).status in ENDED:
                return False
            if (await conn.execute(statements.SIGNAL, at)).first() is not None:
                return False
            now = self._clock()
            await conn.execute(statements.ANSWER, {"run_id": run_id, "name": name, "value": kept, "created_at": now})
            await conn.execute(statements.WAKE, {**at, "now": now})
            return True

        return keepable_token(name) and keepable_token(run_id) and await self._database.transact(work)

    async def give_up(self, run_id: str, *, epoch: int, error: str) -> None:
        """Note that the owner failed."""

        async def work(transaction: Transaction) -> None:
            values = {"of_run": run_id, "of_epoch": epoch, "new_error": error[:255], "now": self._clock()}
            await transaction.conn.execute(statements.GIVE_UP, values)

        await self._database.transact(work)

    async def cancel(self, run_id: str) -> bool:
        """End a run where it stands, and redact what was forgotten while it was under way."""
        if not keepable_token(run_id):
            return False

        async def work(transaction: Transaction) -> bool:
            row = (await transaction.conn.execute(statements.HELD_RUN, {"of_run": run_id})).first()
            if row is None or run_of(row).status in ENDED:
                return False
            await transaction.conn.execute(statements.CANCEL, {"of_run": run_id, "now": self._clock()})
            await redact_pending(transaction, run_id)
            return True

        return await self._database.transact(work)

    async def get(self, run_id: str) -> Run | None:
        """Answer one run."""
        if not keepable_token(run_id):
            return None

        async def work(conn: AsyncConnection) -> Run | None:
            row = (await conn.execute(statements.RUN_BY_ID, {"of_run": run_id})).first()
            return None if row is None else run_of(row)

        return await self._database.read(work)

    async def runs(self, *, status: RunStatus | None = None, limit: int = 100) -> Sequence[Run]:
        """Answer runs, newest first."""

        async def work(conn: AsyncConnection) -> list[Run]:
            page = statements.page_of_runs(status=status, limit=limit)
            return [run_of(row) for row in (await conn.execute(page)).all()]

        return await self._database.read(work)

    async def checkpoints(self, run_id: str) -> Sequence[Checkpoint]:
        """Answer a run's journal as far as it got."""
        if not keepable_token(run_id):
            return []
        return await self._database.read(lambda conn: read_checkpoints(conn, run_id))

    async def read_thread(self, thread_id: str) -> Sequence[ThreadEntry]:
        """Answer every message of a thread in order."""
        return await read_thread(self._database, thread_id, self._straight)

    async def delete_thread(self, thread_id: str) -> int:
        """Delete a thread's messages and its ended runs with their journals."""
        if not keepable_token(thread_id):
            return 0

        async def work(transaction: Transaction) -> int:
            at = {"of_thread": thread_id}
            count = (await transaction.conn.execute(statements.COUNT_MESSAGES, at)).scalar_one()
            for statement in (statements.DELETE_MESSAGES, *statements.DELETE_RUNS):
                await transaction.conn.execute(statement, at)
            transaction.removed_text = True
            return count

        return await self._database.transact(work)

    async def _keep(self, run: NewRun, statement: Insert, standing: dict[str, Any]) -> str:
        thread = run.ctx.thread_id or f"run:{run.id}"
        for name, token in (("run's id", run.id), ("thread's id", thread)):
            if not keepable_token(token):
                msg = f"the {name} cannot be kept; give it 1 to 255 characters, none of them NUL or a lone surrogate"
                raise RunUnavailable(msg)
        now = self._clock()
        row = {
            "id": run.id,
            "thread_id": thread,
            "format": FORMAT,
            "context": encode("context", dump_context(run.ctx)),
            "said": encode("message", run.text),
            "created_at": now,
            "updated_at": now,
        }

        async def work(transaction: Transaction) -> bool:
            if (await transaction.conn.execute(statements.RUN_BY_ID, {"of_run": run.id})).first() is not None:
                return False
            await transaction.conn.execute(statement, row | standing)
            return True

        added: int | None = None
        if self._straight.saves and statement is statements.NEW_HELD_RUN:
            added = await self._straight.change(statements.NEW_HELD_RUN_STRAIGHT, row | standing)
        if added is None:
            added = await self._database.transact(work)
        if not added:
            msg = f"there is a run {run.id} already; give every run an id of its own"
            raise RunUnavailable(msg)
        return now.isoformat()

    async def _take(self, transaction: Transaction, run: Run, owner: str) -> Run:
        at = {"of_run": run.id, "new_owner": owner, "now": self._clock()}
        await transaction.conn.execute(statements.CLAIM, at)
        return replace(run, status="running", owner=owner, epoch=run.epoch + 1, error=None)

    def _held(self, run: Run, recorded: Sequence[Checkpoint]) -> SqlRun:
        return SqlRun(self._database, self._straight, run=run, recorded=recorded, clock=self._clock)


def run_of(row: Sequence[Any]) -> Run:
    """Read one row, in the order of `statements.RUN`.

    Raises:
        RunUnavailable: A newer onfile wrote it.
    """
    id_, said, context, status, waits_for, owner, epoch, output, error, created_at, updated_at, version, *_ = row
    if version > FORMAT:
        msg = f"run {id_} has format {version} and this onfile reads {FORMAT}; use the onfile that wrote it"
        raise RunUnavailable(msg)
    return Run(
        id=id_,
        text=decode(said),
        ctx=load_context(decode(context)),
        status=status,
        waits_for=waits_for,
        owner=owner,
        epoch=epoch,
        output=None if output is None else decode(output),
        error=error,
        created_at=created_at.isoformat(),
        updated_at=updated_at.isoformat(),
    )
