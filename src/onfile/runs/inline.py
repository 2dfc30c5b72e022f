"""`InlineJournal`: runs in this process's memory, for tests and for turns that nobody resumes elsewhere."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from ..memory import Memory
from ..wire.redaction import Erasure, redact
from .journal import (
    ENDED,
    Checkpoint,
    Json,
    NewRun,
    Replay,
    Run,
    RunFenced,
    RunHeld,
    RunStatus,
    RunSuspended,
    RunUnavailable,
    ThreadEntry,
    claimable,
    decode,
    encode,
    without,
)


@dataclass(slots=True, kw_only=True)
class _Shelf:
    """What an inline journal keeps; values as their JSON text, so that nobody can change them in place."""

    clock: Callable[[], datetime]
    runs: dict[str, Run] = field(default_factory=dict[str, Run])
    journals: dict[str, list[tuple[str, str]]] = field(default_factory=dict[str, list[tuple[str, str]]])
    signals: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    threads: dict[str, list[ThreadEntry]] = field(default_factory=dict[str, list[ThreadEntry]])
    pending: dict[str, list[Erasure]] = field(default_factory=dict[str, list[Erasure]])
    said: int = 0

    def put(self, run: Run) -> None:
        self.runs[run.id] = replace(run, updated_at=self.clock().isoformat())

    def say(self, entry: ThreadEntry) -> None:
        self.said += 1
        kept = replace(entry, content=encode("message", entry.content), position=self.said)
        self.threads.setdefault(entry.thread_id, []).append(kept)

    def end(self, run: Run) -> None:
        self.put(run)
        pending = self.pending.pop(run.id, [])
        if pending:
            self.erase(run.id, pending)

    def erase(self, run_id: str, erasures: Sequence[Erasure]) -> int:
        erased = 0
        journal = self.journals[run_id]
        for at, (name, text) in enumerate(journal):
            value, count = redact(decode(text), erasures)
            journal[at] = (name, encode(name, value))
            erased += count
        for entries in self.threads.values():
            for at, entry in enumerate(entries):
                if entry.run_id == run_id:
                    value, count = redact(decode(entry.content), erasures)
                    entries[at] = replace(entry, content=encode("message", value))
                    erased += count
        return erased

    def checkpoints(self, run_id: str) -> list[Checkpoint]:
        recorded = enumerate(self.journals.get(run_id, []), 1)
        return [Checkpoint(position=position, name=name, value=decode(text)) for position, (name, text) in recorded]

    def thread(self, thread_id: str) -> list[ThreadEntry]:
        return [replace(entry, content=decode(entry.content)) for entry in self.threads.get(thread_id, [])]


class InlineJournal:
    """Keeps journals, threads and signals in memory; everything is gone with the process."""

    def __init__(self, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._shelf = _Shelf(clock=clock)

    async def create(self, run: NewRun) -> None:
        """Keep a run that is ready to be claimed."""
        if run.id in self._shelf.runs:
            msg = f"there is a run {run.id} already; give every run an id of its own"
            raise RunUnavailable(msg)
        now = self._shelf.clock().isoformat()
        self._shelf.put(Run(id=run.id, text=run.text, ctx=run.ctx, status="ready", created_at=now))
        self._shelf.journals[run.id] = []

    async def begin(self, run: NewRun, *, owner: str) -> InlineRun:
        """Keep a run that its owner carries at once."""
        await self.create(run)
        return await self.claim(run.id, owner=owner)

    async def claim(self, run_id: str, *, owner: str, lost_after: float | None = None) -> InlineRun:
        """Take a run over, whoever had it; an owner in this process is never lost."""
        run = claimable(run_id, self._shelf.runs.get(run_id))
        if lost_after is not None and run.status == "running" and run.owner != owner:
            msg = f"run {run_id} is carried by {run.owner}; leave it to them"
            raise RunHeld(msg)
        claimed = replace(run, status="running", owner=owner, epoch=run.epoch + 1, error=None)
        self._shelf.put(claimed)
        return InlineRun(self._shelf, claimed)

    async def claim_next(self, *, owner: str, lost_after: float) -> InlineRun | None:
        """Take the oldest run that nobody carries and nobody waits for."""
        left = await self.left(lost_after=lost_after, limit=1)
        return await self.claim(left[0].id, owner=owner) if left else None

    async def disown(self, owner: str) -> int:
        """Leave every run that this owner had to whoever comes next."""
        theirs = [run for run in self._shelf.runs.values() if run.owner == owner and run.status == "running"]
        for run in theirs:
            self._shelf.put(replace(run, status="ready", owner=None))
        return len(theirs)

    async def left(self, *, lost_after: float, limit: int = 100) -> Sequence[Run]:
        """Answer the runs that nobody carries and nobody waits for, oldest first."""
        del lost_after
        return [run for run in self._shelf.runs.values() if run.status == "ready"][:limit]

    async def renew(self, run_id: str, *, epoch: int) -> bool:
        """Tell whether the run is still its owner's."""
        run = self._shelf.runs.get(run_id)
        return run is not None and (run.epoch, run.status) == (epoch, "running")

    async def release(self, run_id: str, *, epoch: int) -> None:
        """Leave a run to whoever comes next."""
        run = self._shelf.runs[run_id]
        if run.epoch == epoch and run.status == "running":
            self._shelf.put(replace(run, status="ready", owner=None))

    async def signal(self, run_id: str, name: str, value: Json) -> bool:
        """Answer a wait; the first answer wins."""
        run = self._shelf.runs.get(run_id)
        if run is None or run.status in ENDED or (run_id, name) in self._shelf.signals:
            return False
        self._shelf.signals[run_id, name] = encode(name, value)
        if run.status == "waiting" and run.waits_for == name:
            self._shelf.put(replace(run, status="ready", waits_for=None))
        return True

    async def give_up(self, run_id: str, *, epoch: int, error: str) -> None:
        """Note that the owner failed."""
        run = self._shelf.runs[run_id]
        if run.epoch == epoch and run.status == "running":
            self._shelf.put(replace(run, status="failed", owner=None, error=error))

    async def cancel(self, run_id: str) -> bool:
        """End a run where it stands."""
        run = self._shelf.runs.get(run_id)
        if run is None or run.status in ENDED:
            return False
        self._shelf.end(replace(run, status="cancelled", owner=None, waits_for=None, epoch=run.epoch + 1))
        return True

    async def get(self, run_id: str) -> Run | None:
        """Answer one run."""
        return self._shelf.runs.get(run_id)

    async def runs(self, *, status: RunStatus | None = None, limit: int = 100) -> Sequence[Run]:
        """Answer runs, newest first."""
        newest = reversed(self._shelf.runs.values())
        return [run for run in newest if status is None or run.status == status][:limit]

    async def checkpoints(self, run_id: str) -> Sequence[Checkpoint]:
        """Answer a run's journal as far as it got."""
        return self._shelf.checkpoints(run_id)

    async def read_thread(self, thread_id: str) -> Sequence[ThreadEntry]:
        """Answer every message of a thread in order."""
        return self._shelf.thread(thread_id)

    async def delete_thread(self, thread_id: str) -> int:
        """Delete a thread's messages and its ended runs with their journals."""
        shelf = self._shelf
        ended = [run for run in shelf.runs.values() if run.status in ENDED]
        # A turn outside any thread is a thread of its own.
        for run in [run for run in ended if (run.ctx.thread_id or f"run:{run.id}") == thread_id]:
            del shelf.runs[run.id], shelf.journals[run.id]
        return len(shelf.threads.pop(thread_id, []))

    async def erase(self, erasure: Erasure) -> int:
        """Redact a forgotten fact from every journal and thread; answer in how many places it stood.

        A run under way keeps what it resolved, and is redacted when it ends.
        """
        erased = 0
        for run in list(self._shelf.runs.values()):
            if run.status in ENDED:
                erased += self._shelf.erase(run.id, [erasure])
            else:
                self._shelf.pending.setdefault(run.id, []).append(erasure)
        return erased


class InlineRun:
    """One run's journal in memory."""

    def __init__(self, shelf: _Shelf, run: Run) -> None:
        self._shelf = shelf
        self._run = run
        self._epoch = run.epoch
        self._run_id = run.id
        self._replay = Replay(run.id, shelf.checkpoints(run.id))

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
        """Tell that there is no transaction to join."""
        del memory
        return False

    async def step(self, name: str, fn: Callable[[], Awaitable[Json]], *, facts_of: Memory | None = None) -> Json:
        """Do the work, then record what it answered; `erase` reaches every run under way, whatever it holds."""
        del facts_of
        stored = self._replay.read(name)
        return stored[0] if stored else self._record(name, await fn())

    async def say(self, name: str, value: Json, entry: ThreadEntry) -> Json:
        """Put one message at the end of its thread and record the value."""
        stored = self._replay.read(name)
        if stored:
            return stored[0]
        recorded = self._record(name, value)
        self._shelf.say(entry)
        return recorded

    async def tx(
        self,
        name: str,
        fn: Callable[[InlineUnit], Awaitable[Json]],
        *,
        failed: Callable[[Exception], Json] | None = None,
    ) -> Json:
        """Do the work and record it; messages and the end of the run are kept with the checkpoint."""
        stored = self._replay.read(name)
        if stored:
            return stored[0]
        unit = InlineUnit()
        try:
            value = await fn(unit)
        except Exception as error:
            if failed is None:
                raise
            unit, value = InlineUnit(), failed(error)
        recorded = self._record(name, value)
        for entry in unit.added:
            self._shelf.say(entry)
        for output in unit.ended:
            run = self._shelf.runs[self._run_id]
            self._shelf.end(replace(run, status="done", owner=None, output=output))
        return recorded

    async def wait(self, name: str) -> Json:
        """Answer the signal of this name, or park the run."""
        stored = self._replay.read(name)
        if stored:
            return stored[0]
        answer = self._shelf.signals.get((self._run_id, name))
        if answer is not None:
            return self._record(name, decode(answer))
        self._shelf.put(replace(self._fenced(), status="waiting", waits_for=name, owner=None))
        raise RunSuspended(run_id=self._run_id, waits_for=name)

    async def thread(self, thread_id: str) -> Sequence[ThreadEntry]:
        """Answer the messages of a thread in order, this run's own left out, and nothing that was forgotten."""
        others = [entry for entry in self._shelf.thread(thread_id) if entry.run_id != self._run_id]
        return [without(entry, self._shelf.pending.get(entry.run_id, ())) for entry in others]

    def _record(self, name: str, value: Json) -> Json:
        self._fenced()
        text = encode(name, value)
        self._shelf.journals[self._run_id].append((name, text))
        self._replay.went_on()
        return decode(text)

    def _fenced(self) -> Run:
        run = self._shelf.runs.get(self._run_id)
        if run is None or run.epoch != self._epoch or run.status != "running":
            raise RunFenced(self._run_id)
        return run


class InlineUnit:
    """What one checkpoint of an inline run adds; applied when its value is recorded."""

    def __init__(self) -> None:
        self.added: list[ThreadEntry] = []
        self.ended: list[Json] = []

    def memory(self, memory: Memory) -> Memory:
        """Answer the memory as it is: there is no transaction to join."""
        return memory

    async def add(self, entry: ThreadEntry) -> None:
        """Put one message at the end of its thread."""
        self.added.append(entry)

    async def end(self, output: Json) -> None:
        """Mark the run as done."""
        self.ended.append(output)
