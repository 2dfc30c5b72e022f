"""`DbosWorkers`: runs on many machines, handed out by DBOS on PostgreSQL and journaled beside the facts.

DBOS queues a run's id, gives it to one worker, and gives it to another when that one died. What a run
said and knows stays in the SQL journal: the checkpoints are the same on one machine and on many, a fact
and its checkpoint stay one transaction, and no fact is ever in a table of DBOS.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dbos import DBOS, DBOSClient, DBOSConfig, DBOSPortableJSONSerializer, SetWorkflowID

from ..ids import new_id
from ..scopes import ScopeContext
from .journal import NewRun, Run, RunUnavailable
from .runner import TurnRunner

QUEUE = "onfile-turns"
WORKFLOW = "onfile_carry_on"
NAME = "onfile"
_log = logging.getLogger("onfile.runs")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkersConfig:
    """How one process takes part."""

    system_database_url: str
    """Where DBOS keeps its own tables: `postgresql://…`, the facts' database or another."""
    executor_id: str
    """Names this process: the same again after a restart, another one in every other process.

    Two processes of one name take each other's runs for those of a dead one.
    """
    application_version: str = "1"
    """Runs are carried on by workers of the version that queued them, so it stays the same over deploys.

    The journal itself tells when code does not fit a run.
    """
    concurrency: int = 4
    """How many runs this process carries at once."""
    poll_seconds: float = 0.2


class DbosWorkers:
    """One process among those that share the runs.

    DBOS is one per process: a host that uses it already cannot have a second one.
    """

    def __init__(self, runner: TurnRunner, config: WorkersConfig) -> None:
        self.runner = runner
        self._config = config

    async def launch(self, *, work: bool = True) -> None:
        """Join in; with `work=False` only to queue runs, such as in a web process.

        What this executor id left behind when it died last is carried on at once.
        """
        config = self._config
        settings: DBOSConfig = {
            "name": NAME,
            "system_database_url": config.system_database_url,
            "application_version": config.application_version,
            "executor_id": config.executor_id,
            # JSON and never pickle, though all there is to keep is a run's id.
            "serializer": DBOSPortableJSONSerializer(),
            "log_level": "WARNING",
            "notification_listener_polling_interval_sec": config.poll_seconds,
        }
        DBOS(config=settings)

        async def carry_on(run_id: str) -> str:
            return await self._carry(run_id)

        # Any number of recoveries: a run that waits over many restarts has done nothing wrong.
        self._carry_on = DBOS.workflow(name=WORKFLOW, max_recovery_attempts=None)(carry_on)
        DBOS.listen_queues([QUEUE] if work else [])
        DBOS.launch()
        await DBOS.register_queue_async(
            QUEUE, worker_concurrency=config.concurrency, polling_interval_sec=config.poll_seconds
        )

    async def close(self) -> None:
        """Leave; what this process was carrying is carried on when its executor id comes back."""
        await asyncio.to_thread(DBOS.destroy)

    async def start(self, text: str, *, ctx: ScopeContext, run_id: str | None = None) -> str:
        """Queue one message of a user and answer the run's id."""
        run = NewRun(id=run_id or new_id("run_"), text=text, ctx=ctx)
        await self.runner.engine.create(run)
        await self.queue(run.id)
        return run.id

    async def queue(self, run_id: str) -> None:
        """Queue a run that waits for nobody; a run that is queued already is not queued twice.

        Raises:
            RunUnavailable: There is no such run.
        """
        run = await self.runner.engine.get(run_id)
        if run is None:
            msg = f"there is no run {run_id}"
            raise RunUnavailable(msg)
        with SetWorkflowID(_workflow_id(run)):
            await DBOS.enqueue_workflow_async(QUEUE, self._carry_on, run_id)

    async def decide(self, run_id: str, tool_call_id: str, *, approved: bool, reason: str = "") -> bool:
        """Approve or reject an action and queue the run; False when it was decided before."""
        first = await self.runner.decide(run_id, tool_call_id, approved=approved, reason=reason)
        if first:
            await self.queue(run_id)
        return first

    async def queue_left_over(self, *, limit: int = 1000) -> list[str]:
        """Queue every run that waits for nobody: those whose process died before it could queue them."""
        left = [run.id for run in await self.runner.engine.runs(status="ready", limit=limit)]
        for run_id in left:
            await self.queue(run_id)
        return left

    async def take_over(self, executor_id: str) -> list[str]:
        """Give the runs of a worker that will not come back to the others.

        Only an operator can know that it is dead and not slow. If it was slow after all, the journal
        fences it off: it can commit nothing to a run that somebody else carries on.

        Returns:
            The ids of the runs.
        """
        left = await DBOS.list_workflows_async(status="PENDING", executor_id=executor_id, name=WORKFLOW)
        for workflow in left:
            await DBOS.resume_workflow_async(workflow.workflow_id, queue_name=QUEUE)
        return [_run_of(workflow.workflow_id) for workflow in left]

    async def idle(self) -> bool:
        """Tell whether nothing is queued or under way, anywhere."""
        statuses = ["ENQUEUED", "PENDING"]
        return not await DBOS.list_workflows_async(status=statuses, name=WORKFLOW, limit=1, load_input=False)

    async def _carry(self, run_id: str) -> str:
        try:
            return (await self.runner.resume(run_id)).status
        except Exception as error:  # noqa: BLE001  # DBOS would keep the words, which may hold facts; the run keeps the type
            _log.error(
                "run %s stopped with %s; it can be queued again", run_id, type(error).__name__
            )  # no traceback: its lines may hold content
            return "failed"


async def queue_from_elsewhere(config: WorkersConfig, runs: Sequence[Run]) -> None:
    """Queue runs from a process that is no worker, such as a command."""
    client = DBOSClient(system_database_url=config.system_database_url, serializer=DBOSPortableJSONSerializer())
    try:
        for run in runs:
            options: Any = {
                "queue_name": QUEUE,
                "workflow_name": WORKFLOW,
                "workflow_id": _workflow_id(run),
                "app_version": config.application_version,
            }
            await client.enqueue_async(options, run.id)
    finally:
        client.destroy()


def _workflow_id(run: Run) -> str:
    # One per stretch between two claims: the same stretch is never queued twice, the next one can be.
    return f"onfile:{run.epoch}:{run.id}"


def _run_of(workflow_id: str) -> str:
    return workflow_id.split(":", 2)[2]
