"""The journal: a run's named checkpoints in order, and the seams to whatever keeps them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from ..errors import OnfileError
from ..memory import Memory
from ..records import Actor
from ..scopes import ScopeContext
from ..wire.redaction import Erasure, redact

FORMAT = 1
"""The version of what checkpoints hold; a run that a newer onfile wrote is refused, not guessed at."""

Json = Any
"""A JSON value: dict, list, str, int, float, bool or None."""
RunStatus = Literal["ready", "running", "waiting", "done", "failed", "cancelled"]
ENDED: frozenset[RunStatus] = frozenset({"done", "cancelled"})


class JournalError(OnfileError):
    """The journal stopped the run; catch it apart from what tools raise, and never show it to a model."""


class NonDeterminismError(JournalError):
    """At one position the journal holds another name than the code asks for."""

    def __init__(self, *, run_id: str, position: int, expected: str, found: str) -> None:
        super().__init__(
            f"step {position} of run {run_id} was recorded as {expected!r} but the code now asks for {found!r}: "
            "the code changed while the run was suspended; finish the run with the code that started it"
        )
        self.run_id = run_id
        self.position = position
        self.expected = expected
        """The name that the journal recorded."""
        self.found = found
        """The name that the code asked for."""


class RunSuspended(JournalError):  # noqa: N818  # no fault: the run waits for a person, and holds nothing meanwhile
    """The run waits for a signal; claim it again when there is one."""

    def __init__(self, *, run_id: str, waits_for: str) -> None:
        super().__init__(f"run {run_id} waits for {waits_for!r}; signal it, then resume the run")
        self.run_id = run_id
        self.waits_for = waits_for


class RunFenced(JournalError):  # noqa: N818  # it says what happened to the run's owner
    """Somebody else claimed the run, so this owner can commit nothing any more."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"run {run_id} has another owner now, or was cancelled; drop what this one was doing")
        self.run_id = run_id


class RunUnavailable(JournalError):  # noqa: N818  # a state, not a fault
    """The run does not exist, or has ended, or may not be claimed now; the message says which."""


class RunHeld(RunUnavailable):
    """The run has an owner who was seen a moment ago; leave it to them."""


class CheckpointError(JournalError, TypeError):
    """A checkpoint's value is not plain JSON."""


def encode(name: str, value: Json) -> str:
    """Spell out a checkpoint's value as JSON in ASCII, so that every database keeps it exactly.

    Raises:
        CheckpointError: It holds something else than JSON values; the message names the checkpoint.
    """
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError):
        msg = f"the value of checkpoint {name!r} is not plain JSON; return dicts, lists, strings, numbers and None"
    raise CheckpointError(msg)  # outside the handler: the encoder's error may quote the value


def decode(text: str) -> Json:
    """Read a checkpoint's value back."""
    return json.loads(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """One turn to be run: the user's message, and who said it where."""

    id: str
    text: str
    ctx: ScopeContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run as a list of runs shows it."""

    id: str
    text: str
    ctx: ScopeContext
    status: RunStatus
    waits_for: str | None = None
    """The name of the wait that holds it, such as `approval:<tool call>`."""
    owner: str | None = None
    epoch: int = 0
    """How often it was claimed; an owner with a lower one can commit nothing."""
    output: Json = None
    error: str | None = None
    """The type of what stopped it, never the words."""
    created_at: str = ""
    """ISO 8601, UTC."""
    updated_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """One line of a journal."""

    position: int
    """From 1."""
    name: str
    value: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadEntry:
    """One message of a thread, as it was said, called or answered."""

    thread_id: str
    run_id: str
    kind: Literal["user", "assistant", "tool"]
    content: Json
    position: int = 0
    """Rises along the thread; given by the store."""


class Unit(Protocol):
    """One transaction under way: what is done through it is kept with the checkpoint, or not at all."""

    def memory(self, memory: Memory) -> Memory:
        """Answer the same memory, writing in this transaction where its provider can join it."""
        ...

    async def add(self, entry: ThreadEntry) -> None:
        """Put one message at the end of its thread."""
        ...

    async def end(self, output: Json) -> None:
        """Mark the run as done, and redact what was erased while it was under way."""
        ...


class Journal(Protocol):
    """One run's checkpoints, as the loop meets them.

    The same name at a position answers the stored value and does nothing; another name raises
    `NonDeterminismError`.
    """

    @property
    def run(self) -> Run:
        """The run as it was when it was claimed."""
        ...

    @property
    def run_id(self) -> str:
        """The run it belongs to."""
        ...

    @property
    def epoch(self) -> int:
        """By which claim it is held."""
        ...

    def joins(self, memory: Memory) -> bool:
        """Tell whether the memory's provider can write in a transaction of this journal.

        One that cannot is written to in a `step`: a repeated write is caught by its idempotency key.
        """
        ...

    async def step(self, name: str, fn: Callable[[], Awaitable[Json]], *, facts_of: Memory | None = None) -> Json:
        """Do the work, then record what it answered: at least once, exactly once when nothing dies.

        What `fn` raises passes through, and nothing is recorded. An answer that is a digest says
        whose facts it holds by `facts_of`: one that is forgotten meanwhile is redacted when the run ends.
        """
        ...

    async def say(self, name: str, value: Json, entry: ThreadEntry) -> Json:
        """Put one message at the end of its thread and record the value, in one transaction: exactly once."""
        ...

    async def tx(
        self,
        name: str,
        fn: Callable[[Unit], Awaitable[Json]],
        *,
        failed: Callable[[Exception], Json] | None = None,
    ) -> Json:
        """Do the work and record it in one transaction: exactly once.

        `fn` may be run again from the start where another writer got in between. When it raises,
        all it did is undone; then what `failed` answers is recorded, or without `failed` the
        exception passes through and nothing is.
        """
        ...

    async def wait(self, name: str) -> Json:
        """Answer the signal of this name.

        Raises:
            RunSuspended: There is none yet; the run is parked and holds no thread, process or connection.
        """
        ...

    async def thread(self, thread_id: str) -> Sequence[ThreadEntry]:
        """Answer the messages of a thread in order, this run's own left out, and nothing that was forgotten.

        A run that has not ended keeps what it resolved; another one must not take it from there.
        """
        ...


class JournalEngine(Protocol):
    """Where journals, threads and signals are kept."""

    async def create(self, run: NewRun) -> None:
        """Keep a run that is ready to be claimed; an id that is taken raises `RunUnavailable`."""
        ...

    async def begin(self, run: NewRun, *, owner: str) -> Journal:
        """Keep a run that its owner carries at once, so that no worker takes it in between."""
        ...

    async def claim(self, run_id: str, *, owner: str, lost_after: float | None = None) -> Journal:
        """Take a run over: the owner before can commit nothing from now on.

        Args:
            run_id: The run.
            owner: Who carries it from now on.
            lost_after: For how many seconds another owner must not have been seen; without it, the
                run is taken whoever has it.

        Raises:
            RunHeld: Another owner was seen since then.
            RunUnavailable: There is no such run, or it has ended, or it waits for a signal.
        """
        ...

    async def claim_next(self, *, owner: str, lost_after: float) -> Journal | None:
        """Take the oldest run that nobody waits for and that has no owner, or one who was not seen for so long."""
        ...

    async def disown(self, owner: str) -> int:
        """Leave every run that this owner had to whoever comes next; right once, when its process starts again."""
        ...

    async def left(self, *, lost_after: float, limit: int = 100) -> Sequence[Run]:
        """Answer the runs that `claim_next` would take, oldest first."""
        ...

    async def renew(self, run_id: str, *, epoch: int) -> bool:
        """Note that the run's owner is alive; False where somebody else has the run, or it ended."""
        ...

    async def release(self, run_id: str, *, epoch: int) -> None:
        """Leave a run to whoever comes next, from where it is."""
        ...

    async def signal(self, run_id: str, name: str, value: Json) -> bool:
        """Answer a wait, before or while it waits. The first answer wins: False for a later one."""
        ...

    async def give_up(self, run_id: str, *, epoch: int, error: str) -> None:
        """Note that the owner failed; the run can be claimed again."""
        ...

    async def cancel(self, run_id: str) -> bool:
        """End a run where it stands; False when it had ended or does not exist."""
        ...

    async def get(self, run_id: str) -> Run | None:
        """Answer one run."""
        ...

    async def runs(self, *, status: RunStatus | None = None, limit: int = 100) -> Sequence[Run]:
        """Answer runs, newest first."""
        ...

    async def checkpoints(self, run_id: str) -> Sequence[Checkpoint]:
        """Answer a run's journal as far as it got."""
        ...

    async def read_thread(self, thread_id: str) -> Sequence[ThreadEntry]:
        """Answer every message of a thread in order."""
        ...

    async def delete_thread(self, thread_id: str) -> int:
        """Delete a thread's messages and its ended runs with their journals; answer how many messages."""
        ...


class Replay:
    """How far a run has got through what its journal holds."""

    def __init__(self, run_id: str, recorded: Sequence[Checkpoint]) -> None:
        self.run_id = run_id
        self.position = 1
        self._recorded: Mapping[int, Checkpoint] = {checkpoint.position: checkpoint for checkpoint in recorded}

    def read(self, name: str) -> tuple[Json] | None:
        """Answer the recorded value at this position and go on, or None where the work is yet to be done.

        Raises:
            NonDeterminismError: Another name was recorded here.
        """
        checkpoint = self._recorded.get(self.position)
        if checkpoint is None:
            return None
        if checkpoint.name != name:
            raise NonDeterminismError(run_id=self.run_id, position=self.position, expected=checkpoint.name, found=name)
        self.position += 1
        return (checkpoint.value,)

    def went_on(self) -> None:
        """Go on after the work of this position was recorded."""
        self.position += 1


def without(entry: ThreadEntry, erasures: Sequence[Erasure]) -> ThreadEntry:
    """Answer a message without the forgotten facts."""
    return replace(entry, content=redact(entry.content, erasures)[0]) if erasures else entry


def dump_context(ctx: ScopeContext) -> dict[str, Json]:
    """Answer a context as JSON values."""
    return {
        "actor": ctx.actor.id,
        "tenant": ctx.actor.tenant_ref,
        "thread": ctx.thread_id,
        "agent": ctx.agent_name,
        "shared": ctx.shared,
    }


def load_context(data: Mapping[str, Json]) -> ScopeContext:
    """Read a context back."""
    return ScopeContext(
        actor=Actor(id=data["actor"], tenant_ref=data["tenant"]),
        thread_id=data["thread"],
        agent_name=data["agent"],
        shared=data["shared"],
    )


def claimable(run_id: str, run: Run | None) -> Run:
    """Answer the run if it may be claimed.

    Raises:
        RunUnavailable: It does not exist, has ended, or waits for a signal.
    """
    if run is None:
        msg = f"there is no run {run_id}"
    elif run.status in ENDED:
        msg = f"run {run_id} has ended ({run.status}); start a new one"
    elif run.status == "waiting":
        msg = f"run {run_id} waits for {run.waits_for!r}; answer it first"
    else:
        return run
    raise RunUnavailable(msg)
