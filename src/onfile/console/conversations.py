"""Conversations: turns of one person in their threads, carried on wherever a process left them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..records import Actor
from ..runs.assistant import Assistant
from ..runs.journal import Checkpoint, Journal, NewRun, Run
from ..runs.runner import TurnResult, TurnRunner
from ..runs.sql import SqlJournal
from ..scopes import ScopeContext
from .owners import is_gone, this_process
from .threads import Threads
from .watching import Tell, WatchedJournal

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

LOST_AFTER = 10.0
"""Seconds after which a process that nobody sees any more is given up; one of this machine that died, at once."""


class Conversations:
    """An assistant's conversations, kept where the facts are."""

    def __init__(self, assistant: Assistant, engine: AsyncEngine, *, notice: str = "") -> None:
        """Take what answers and where it is kept.

        Args:
            assistant: What a turn is made of.
            engine: The facts' own, so that a fact and its checkpoint are one transaction.
            notice: What people should know of who answers.
        """
        self.assistant = assistant
        self.notice = notice
        self.journal = SqlJournal(engine)
        self.threads = Threads(engine)
        self.runner = TurnRunner(assistant, self.journal, owner=this_process(), lost_after=LOST_AFTER)

    async def setup(self) -> None:
        """Make the tables that are missing."""
        await self.journal.setup()

    async def say(self, text: str, *, ctx: ScopeContext, run_id: str, tell: Tell) -> TurnResult:
        """Answer one message.

        Raises:
            RunUnavailable: There is a run of that id already.
            Exception: Whatever a model raised; the turn is kept.
        """
        begun = await self.journal.begin(NewRun(id=run_id, text=text, ctx=ctx), owner=self.runner.owner)
        return await self._watch(begun, tell)

    async def carry_on(self, run_id: str, *, tell: Tell, replay: bool = False) -> TurnResult:
        """Finish a turn that some process left, from its last checkpoint; one that waits or ended is only told about.

        Args:
            run_id: The turn's run.
            tell: Handed each thing as it happens.
            replay: Also tell what had happened before.

        Raises:
            RunHeld: Another process carries it and lives.
            RunUnavailable: There is no such run.
            Exception: Whatever a model raised; the turn is kept.
        """
        run = await self.journal.get(run_id)
        if run is not None and run.status in ("waiting", "done", "cancelled"):
            return await self.runner.result(run_id)
        lost_after = None if run is not None and is_gone(run.owner) else LOST_AFTER
        claimed = await self.journal.claim(run_id, owner=self.runner.owner, lost_after=lost_after)
        return await self._watch(claimed, tell, replay=replay)

    async def run_of(self, run_id: str, actor: Actor) -> Run | None:
        """Answer a run of this actor's; somebody else's is as missing as one that never was."""
        run = await self.journal.get(run_id)
        return run if run is not None and run.ctx.actor == actor else None

    async def checkpoints(self, run_id: str) -> Sequence[Checkpoint]:
        """Answer a run's journal as far as it got."""
        return await self.journal.checkpoints(run_id)

    async def result(self, run_id: str) -> TurnResult:
        """Tell how far a run got."""
        return await self.runner.result(run_id)

    async def _watch(self, journal: Journal, tell: Tell, *, replay: bool = False) -> TurnResult:
        watched = WatchedJournal(journal, tell, replay=replay)
        return await self.runner.carry_on(watched, on_text=watched.text)
