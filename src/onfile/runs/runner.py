"""`TurnRunner`: start a turn, resume it wherever it stopped, and give it a person's answers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from weakref import WeakValueDictionary

from ..ids import new_id
from ..scopes import ScopeContext
from .assistant import Assistant
from .journal import Journal, JournalEngine, Json, NewRun, Run, RunFenced, RunStatus, RunSuspended, RunUnavailable
from .loop import run_turn
from .messages import TextSink
from .pending import PendingCall, pending_call

LOST_AFTER = 30.0
SEEN_TIMES = 3
"""How often an owner shows itself within the time after which it would be lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """How far a turn got."""

    run_id: str
    status: RunStatus
    """`done`, or `waiting` for a person."""
    text: str = ""
    """What the model said last; empty while the turn waits."""
    stopped: Literal["answer", "max_steps", ""] = ""
    """Why a turn is done: the model answered, or it ran out of steps."""
    pending: PendingCall | None = None
    """What a person is asked, while the turn waits."""


class TurnRunner:
    """Runs an assistant's turns on an engine that keeps their journals."""

    def __init__(
        self, assistant: Assistant, engine: JournalEngine, *, owner: str = "local", lost_after: float = LOST_AFTER
    ) -> None:
        """Take what answers and where it is kept.

        Args:
            assistant: What a turn is made of.
            engine: Where journals and threads are kept.
            owner: Names this process; the same again after a restart, another one in every process.
            lost_after: For how many seconds an owner must not have been seen until a worker takes its
                run over. This process shows itself three times as often.
        """
        self.assistant = assistant
        self.engine = engine
        self.owner = owner
        self.lost_after = lost_after
        self._under_way: dict[str, asyncio.Event] = {}
        self._resuming: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def start(
        self, text: str, *, ctx: ScopeContext, run_id: str | None = None, on_text: TextSink | None = None
    ) -> TurnResult:
        """Answer one message of a user.

        Args:
            text: What they said.
            ctx: Who said it, and in which thread.
            run_id: An id of the host's own; unless given, a new one that sorts by time.
            on_text: Handed the model's text as it comes.

        Raises:
            RunUnavailable: There is a run of that id already.
            Exception: Whatever a model or a provider raised; the run is kept and can be resumed.
        """
        run = NewRun(id=run_id or new_id("run_"), text=text, ctx=ctx)
        return await self.carry_on(await self.engine.begin(run, owner=self.owner), on_text=on_text)

    async def resume(self, run_id: str, *, on_text: TextSink | None = None) -> TurnResult:
        """Take a run over and carry it on from its last checkpoint; one that waits or is done is only told about.

        What this runner is carrying already is waited for, and not done a second time beside it.

        Raises:
            RunHeld: Another owner was seen with it within the last `lost_after` seconds.
            RunUnavailable: There is no such run, or it was cancelled.
            NonDeterminismError: Its journal fits other code.
            Exception: Whatever a model or a provider raised; the run is kept and can be resumed.
        """
        lock = self._resuming.setdefault(run_id, asyncio.Lock())
        async with lock:
            while (over := self._under_way.get(run_id)) is not None:
                await over.wait()
            standing = await self.engine.get(run_id)
            if standing is not None and standing.status in ("waiting", "done"):
                return await self._result(standing)
            # Not from an owner who was seen: two that carry one run would both do what it does next.
            journal = await self.engine.claim(run_id, owner=self.owner, lost_after=self.lost_after)
            return await self.carry_on(journal, on_text=on_text)

    async def carry_on(self, journal: Journal, *, on_text: TextSink | None = None) -> TurnResult:
        """Carry on a run that this process has claimed, and show meanwhile that it is alive.

        When this is cancelled, the run is left to whoever comes next.

        Raises:
            NonDeterminismError: Its journal fits other code.
            Exception: Whatever a model or a provider raised; the run is kept and can be resumed.
        """
        run = journal.run
        over = self._under_way[run.id] = asyncio.Event()
        try:
            output = await self._carry_on(journal, on_text)
        except (RunSuspended, RunFenced):
            return await self.result(run.id)  # told by the run's own state
        except asyncio.CancelledError:
            await self.engine.release(run.id, epoch=journal.epoch)
            raise
        except BaseException as error:
            await self.engine.give_up(run.id, epoch=journal.epoch, error=type(error).__name__)
            raise
        finally:
            over.set()
            if self._under_way.get(run.id) is over:
                del self._under_way[run.id]
        return TurnResult(run_id=run.id, status="done", text=output["text"], stopped=output["stopped"])

    async def result(self, run_id: str) -> TurnResult:
        """Tell how far a run got, without carrying it on.

        Raises:
            RunUnavailable: There is no such run.
        """
        run = await self.engine.get(run_id)
        if run is None:
            msg = f"there is no run {run_id}"
            raise RunUnavailable(msg)
        return await self._result(run)

    async def pending(self, run_id: str) -> PendingCall | None:
        """Answer what a run waits for a person to decide or answer, or None."""
        run = await self.engine.get(run_id)
        return None if run is None else await self._pending(run)

    async def decide(self, run_id: str, tool_call_id: str, *, approved: bool, reason: str = "") -> bool:
        """Approve or reject an action; the first answer wins, and False tells that this was a later one."""
        answer = {"approved": approved, "reason": reason}
        return await self.engine.signal(run_id, f"approval:{tool_call_id}", answer)

    async def answer(self, run_id: str, tool_call_id: str, answers: Sequence[str | None] | None) -> bool:
        """Answer what the model asked, in the order of its questions; None skips one, or all of them."""
        kept = None if answers is None else list(answers)
        return await self.engine.signal(run_id, f"answer:{tool_call_id}", {"answers": kept})

    async def recover(self, *, limit: int = 100) -> list[TurnResult]:
        """Carry on every run that this owner had when its process died, and those that nobody carries."""
        await self.engine.disown(self.owner)
        results: list[TurnResult] = []
        while len(results) < limit:
            journal = await self.engine.claim_next(owner=self.owner, lost_after=self.lost_after)
            if journal is None:
                break
            results.append(await self.carry_on(journal))
        return results

    async def _result(self, run: Run) -> TurnResult:
        output: dict[str, Json] = run.output or {}
        return TurnResult(
            run_id=run.id,
            status=run.status,
            text=output.get("text", ""),
            stopped=output.get("stopped", ""),
            pending=await self._pending(run),
        )

    async def _pending(self, run: Run) -> PendingCall | None:
        # A run that waits for nobody has no question, and its whole journal need not be read to know that.
        return pending_call(run, await self.engine.checkpoints(run.id)) if run.status == "waiting" else None

    async def _carry_on(self, journal: Journal, on_text: TextSink | None) -> Json:
        run = journal.run
        turn = asyncio.ensure_future(
            run_turn(journal, self.assistant, NewRun(id=run.id, text=run.text, ctx=run.ctx), on_text=on_text)
        )
        seen = asyncio.ensure_future(self._be_seen(journal))
        try:
            await asyncio.wait({turn, seen}, return_when=asyncio.FIRST_COMPLETED)
            if not turn.done():
                raise RunFenced(run.id)
            return turn.result()
        finally:
            seen.cancel()
            turn.cancel()
            await asyncio.wait({turn, seen})
            if not turn.cancelled():
                turn.exception()  # looked at, or asyncio would log that nobody did

    async def _be_seen(self, journal: Journal) -> None:
        """Show that this process is alive, until somebody else has the run."""
        held = True
        while held:
            await asyncio.sleep(self.lost_after / SEEN_TIMES)
            with contextlib.suppress(Exception):  # a database that is away is told the next time
                held = await self.engine.renew(journal.run_id, epoch=journal.epoch)
