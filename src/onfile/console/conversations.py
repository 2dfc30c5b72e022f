"""Conversations: turns of one person in their threads, carried on wherever a process left them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..records import Actor
from ..runs.assistant import Assistant
from ..runs.journal import Checkpoint, Journal, NewRun, Run, RunHeld
from ..runs.runner import TurnResult, TurnRunner
from ..runs.sql import SqlJournal
from ..scopes import ScopeContext
from .owners import is_gone, this_process
from .threads import Threads
from .watching import Tell, WatchedJournal

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

CHAT = "onfile-chat"
"""The agent in whose name these conversations are held: what other agents run in the same database is left alone."""
LOST_AFTER = 10.0
"""Seconds after which a process that nobody sees any more is given up; one of this machine that died, at once."""
_SECONDS_BETWEEN_LOOKS = 0.5


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
        self.threads = Threads(engine, agent_name=CHAT)
        self.runner = TurnRunner(assistant, self.journal, owner=this_process(), lost_after=LOST_AFTER)

    async def setup(self) -> None:
        """Make the tables that are missing."""
        await self.journal.setup()

    def context(self, actor: Actor, thread_id: str) -> ScopeContext:
        """Answer the context of a turn in a thread."""
        return ScopeContext(actor=actor, thread_id=thread_id, agent_name=CHAT)

    async def say(self, text: str, *, actor: Actor, thread_id: str, run_id: str, tell: Tell) -> TurnResult:
        """Answer one message.

        Raises:
            RunUnavailable: There is a run of that id already.
            Exception: Whatever a model raised; the turn is kept.
        """
        new = NewRun(id=run_id, text=text, ctx=self.context(actor, thread_id))
        return await self._watch(await self.journal.begin(new, owner=self.runner.owner), tell)

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
        known = [] if replay else [one.name for one in await self.journal.checkpoints(run_id)]
        return await self._watch(claimed, tell, known=known)

    async def take_over(
        self, run_id: str, *, tell: Tell, replay: bool = False, held: Callable[[], None] = lambda: None
    ) -> TurnResult:
        """Carry a turn on once nobody else does; `held` is called once when somebody else does.

        Raises:
            RunUnavailable: There is no such run.
            Exception: Whatever a model raised; the turn is kept.
        """
        told = False
        while True:
            try:
                return await self.carry_on(run_id, tell=tell, replay=replay)
            except RunHeld:
                if not told:
                    held()
                told = True
                await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)

    async def run_of(self, run_id: str, actor: Actor) -> Run | None:
        """Answer a run of this actor's; somebody else's is as missing as one that never was."""
        run = await self.journal.get(run_id)
        return run if run is not None and (run.ctx.actor, run.ctx.agent_name) == (actor, CHAT) else None

    async def checkpoints(self, run_id: str) -> Sequence[Checkpoint]:
        """Answer a run's journal as far as it got."""
        return await self.journal.checkpoints(run_id)

    async def result(self, run_id: str) -> TurnResult:
        """Tell how far a run got."""
        return await self.runner.result(run_id)

    async def _watch(self, journal: Journal, tell: Tell, *, known: Sequence[str] = ()) -> TurnResult:
        watched = WatchedJournal(journal, tell, known=known)
        return await self.runner.carry_on(watched, on_text=watched.text)
