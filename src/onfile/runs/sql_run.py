"""One run's journal in SQL: every checkpoint fenced, and a fact in the transaction of its own."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ..digest import MemoryDigest
from ..events import Event, emit
from ..memory import Memory
from ..stores.joined import HoldingProvider, JoiningProvider
from ..stores.journals import postpone, redact_pending
from ..stores.straight import Straight
from ..text import keepable_token
from ..wire.digests import load_digest
from ..wire.redaction import Erasure, erasures_of, marks_in
from . import statements
from .journal import (
    Checkpoint,
    JournalError,
    Json,
    Replay,
    Run,
    RunFenced,
    RunSuspended,
    ThreadEntry,
    decode,
    encode,
    without,
)

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from ..stores.transactions import Database, Transaction


class SqlRun:
    """One run's journal in SQL, held by one owner."""

    def __init__(
        self,
        database: Database,
        straight: Straight,
        *,
        run: Run,
        recorded: Sequence[Checkpoint],
        clock: Callable[[], datetime],
    ) -> None:
        self._database = database
        self._straight = straight
        self._engine = straight.engine
        self._run = run
        self._run_id = run.id
        self._epoch = run.epoch
        self._clock = clock
        self._replay = Replay(run.id, recorded)
        self._marked = set[str]().union(*(marks_in(checkpoint.value) for checkpoint in recorded))

    @property
    def run(self) -> Run:
        """The run as it was when it was claimed."""
        return self._run

    @property
    def run_id(self) -> str:
        """The run it belongs to."""
        return self._run_id

    @property
    def epoch(self) -> int:
        """By which claim it is held."""
        return self._epoch

    def joins(self, memory: Memory) -> bool:
        """Tell whether the memory's provider can write in a transaction of this journal."""
        return _joining(memory, self._engine) is not None

    async def step(self, name: str, fn: Callable[[], Awaitable[Json]], *, facts_of: Memory | None = None) -> Json:
        """Do the work, then record what it answered."""
        stored = self._replay.read(name)
        if stored:
            return stored[0]
        value = await fn()
        provider = None if facts_of is None else _joining(facts_of, self._engine)
        return await self._record(name, value, holding=provider)

    async def say(self, name: str, value: Json, entry: ThreadEntry) -> Json:
        """Record that a message is in the thread, and put it there."""
        stored = self._replay.read(name)
        return stored[0] if stored else await self._record(name, value, entry)

    async def tx(
        self,
        name: str,
        fn: Callable[[SqlUnit], Awaitable[Json]],
        *,
        failed: Callable[[Exception], Json] | None = None,
    ) -> Json:
        """Do the work and record it in one transaction."""
        stored = self._replay.read(name)
        if stored:
            return stored[0]
        unit: SqlUnit | None = None

        async def work(transaction: Transaction) -> Json:
            nonlocal unit
            await self._fence(transaction)
            unit = SqlUnit(transaction, self._engine, run_id=self._run_id, clock=self._clock)
            value = await fn(unit)
            await self._put(transaction, name, value)
            if unit.ended:
                await redact_pending(transaction, self._run_id)
            return value

        try:
            value = await self._database.transact(work)
        except JournalError:
            raise
        except Exception as error:
            if failed is None:
                raise
            value = failed(error)
            # At the same position: nothing of what failed was kept, so the failure is what happened there.
            return await self.step(name, _answer(value))
        if unit is not None:
            await unit.tell()
        return self._went_on(name, value)

    async def wait(self, name: str) -> Json:
        """Answer the signal of this name, or park the run."""
        stored = self._replay.read(name)
        if stored:
            return stored[0]

        async def work(transaction: Transaction) -> tuple[Json] | None:
            await self._fence(transaction)
            at = {"of_run": self._run_id, "of_name": name}
            row = (await transaction.conn.execute(statements.SIGNAL, at)).first()
            if row is None:
                values = {"of_run": self._run_id, "new_wait": name, "now": self._clock()}
                await transaction.conn.execute(statements.PARK, values)
                return None
            value = decode(row[0])
            await self._put(transaction, name, value)
            return (value,)

        answer = await self._database.transact(work)
        if answer is None:
            raise RunSuspended(run_id=self._run_id, waits_for=name)
        return self._went_on(name, answer[0])

    async def thread(self, thread_id: str) -> Sequence[ThreadEntry]:
        """Answer the messages of a thread in order, this run's own left out, and nothing that was forgotten."""
        entries = await read_thread(self._database, thread_id, self._straight)
        others = [entry for entry in entries if entry.run_id != self._run_id]
        if not any(marks_in(entry.content) for entry in others):
            return others

        async def owed(conn: AsyncConnection) -> Sequence[Any]:
            return (await conn.execute(statements.OWED_IN_THREAD, {"of_thread": thread_id})).all()

        erasures: dict[str, list[Erasure]] = {}
        for run_id, record_id, mark in await self._database.read(owed):
            erasures.setdefault(run_id, []).append(Erasure(record_id=record_id, mark=mark))
        return [without(entry, erasures.get(entry.run_id, ())) for entry in others]

    async def _record(
        self, name: str, value: Json, entry: ThreadEntry | None = None, *, holding: JoiningProvider | None = None
    ) -> Json:
        """Record what needs nothing else in its transaction, in as few trips as there can be."""
        new, now = marks_in(value) - self._marked, self._clock()
        at = {
            "of_run": self._run_id,
            "of_epoch": self._epoch,
            "at_position": self._replay.position,
            "new_name": name,
            "new_value": encode(name, value),
            "now": now,
        }
        recorded: int | None = None
        if holding is not None and new:
            recorded = await self._database.transact(
                lambda transaction: self._keep_digest(transaction, at, new, load_digest(value), holding)
            )
        elif self._straight.saves:
            said = (
                {f"said_{column}": cell for column, cell in message_row(entry, now).items()}
                if entry is not None
                else {}
            )
            marks = {"marks": sorted(new)} if new else {}
            statement = statements.STRAIGHT[entry is not None, bool(new)]
            recorded = await self._straight.change(statement, at | said | marks)
        if recorded is None:
            recorded = await self._database.transact(lambda transaction: self._keep(transaction, at, new, entry))
        if recorded != 1:
            raise RunFenced(self._run_id)
        return self._went_on(name, value)

    async def _keep(
        self, transaction: Transaction, at: Mapping[str, Any], marks: set[str], entry: ThreadEntry | None
    ) -> int:
        conn = transaction.conn
        recorded = (await conn.execute(statements.RECORD_FENCED, at)).rowcount
        if recorded == 1:
            if entry is not None:
                await conn.execute(statements.SAY, message_row(entry, at["now"]))
            if marks:
                await conn.execute(statements.MARK, [{"mark": mark, "run_id": self._run_id} for mark in sorted(marks)])
        return recorded

    async def _keep_digest(
        self,
        transaction: Transaction,
        at: Mapping[str, Any],
        marks: set[str],
        digest: MemoryDigest,
        provider: JoiningProvider,
    ) -> int:
        """Record a digest, and see to what of it was forgotten since it was read.

        Whoever forgets takes the fact first and asks then which runs hold it. So do we: either the fact
        is seen to be gone here, or the marks are seen there. And neither waits for the other in a ring.
        """
        joined, facts = provider.within(transaction), erasures_of(digest)
        gone = list[Erasure]()
        if isinstance(joined, HoldingProvider):
            there = await joined.hold([fact.record_id for fact in facts], scopes=digest.scopes)
            gone = [fact for fact in facts if fact.record_id not in there]
        recorded = await self._keep(transaction, at, marks, None)
        if recorded == 1 and gone:
            await postpone(transaction, self._run_id, gone, now=at["now"])
        return recorded

    async def _fence(self, transaction: Transaction) -> None:
        row = (await transaction.conn.execute(statements.FENCE, {"of_run": self._run_id})).first()
        if row is None or tuple(row)[:2] != (self._epoch, "running"):
            raise RunFenced(self._run_id)

    async def _put(self, transaction: Transaction, name: str, value: Json) -> None:
        row = {
            "run_id": self._run_id,
            "position": self._replay.position,
            "name": name,
            "value": encode(name, value),
            "epoch": self._epoch,
            "created_at": self._clock(),
        }
        await transaction.conn.execute(statements.RECORD, row)
        new = marks_in(value) - self._marked
        if new:
            rows = [{"run_id": self._run_id, "mark": mark} for mark in sorted(new)]
            await transaction.conn.execute(statements.MARK, rows)

    def _went_on(self, name: str, value: Json) -> Json:
        self._replay.went_on()
        self._marked |= marks_in(value)
        return decode(encode(name, value))


class SqlUnit:
    """One transaction of a journal, for what is to be kept with its checkpoint."""

    def __init__(
        self, transaction: Transaction, engine: AsyncEngine, *, run_id: str, clock: Callable[[], datetime]
    ) -> None:
        self._transaction = transaction
        self._engine = engine
        self._run_id = run_id
        self._clock = clock
        self._told: list[tuple[Memory, Event]] = []
        self.ended = False

    def memory(self, memory: Memory) -> Memory:
        """Answer the memory writing in this transaction, where its provider is on the journal's engine.

        Its events are held back until the transaction is kept.
        """
        provider = _joining(memory, self._engine)
        if provider is None:
            return memory
        joined = copy.copy(memory)
        joined.provider = provider.within(self._transaction)

        def hold_back(happened: Event) -> None:
            self._told.append((memory, happened))

        joined.on_event = hold_back
        return joined

    async def add(self, entry: ThreadEntry) -> None:
        """Put one message at the end of its thread."""
        await self._transaction.conn.execute(statements.SAY, message_row(entry, self._clock()))

    async def end(self, output: Json) -> None:
        """Mark the run as done; what was erased meanwhile is redacted in the same transaction."""
        values = {"of_run": self._run_id, "new_output": encode("output", output), "now": self._clock()}
        await self._transaction.conn.execute(statements.FINISH, values)
        self.ended = True

    async def tell(self) -> None:
        """Hand over the events of what is now kept."""
        for memory, happened in self._told:
            await emit(happened, memory.on_event)


def message_row(entry: ThreadEntry, now: datetime) -> dict[str, Any]:
    """Answer the row of a message."""
    return {
        "thread_id": entry.thread_id,
        "run_id": entry.run_id,
        "kind": entry.kind,
        "content": encode("message", entry.content),
        "created_at": now,
    }


async def read_checkpoints(conn: AsyncConnection, run_id: str) -> list[Checkpoint]:
    """Answer a run's journal as far as it got."""
    rows = (await conn.execute(statements.CHECKPOINTS, {"of_run": run_id})).all()
    return [Checkpoint(position=position, name=name, value=decode(value)) for position, name, value in rows]


async def read_thread(database: Database, thread_id: str, straight: Straight) -> list[ThreadEntry]:
    """Answer every message of a thread in order."""
    if not keepable_token(thread_id):
        return []
    at = {"of_thread": thread_id}

    async def work(conn: AsyncConnection) -> Sequence[Any]:
        return (await conn.execute(statements.THREAD, at)).all()

    rows = await straight.rows(statements.THREAD, at) if straight.saves else await database.read(work)
    return [
        ThreadEntry(thread_id=thread_id, run_id=run_id, kind=kind, content=decode(content), position=position)
        for position, run_id, kind, content in rows
    ]


def _answer(value: Json) -> Callable[[], Awaitable[Json]]:
    async def answer() -> Json:
        return value

    return answer


def _joining(memory: Memory, engine: AsyncEngine) -> JoiningProvider | None:
    provider = memory.provider
    return provider if isinstance(provider, JoiningProvider) and provider.engine is engine else None
