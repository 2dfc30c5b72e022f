"""`DbosWorkers`: runs on many machines, handed out by DBOS on PostgreSQL and journaled beside the facts.

DBOS queues a run's id and gives it to one worker. What a run said and knows stays in the SQL journal:
the checkpoints are the same on one machine and on many, a fact and its checkpoint stay one transaction,
and no fact is ever in a table of DBOS. DBOS does not notice by itself that a worker died; the journal
tells who was seen, and the other workers queue again what was left.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dbos import DBOS, DBOSClient, DBOSConfig, DBOSPortableJSONSerializer, SetWorkflowID

from ..ids import new_id
from ..scopes import ScopeContext
from .journal import Journal, NewRun, Run, RunUnavailable
from .runner import TurnRunner

QUEUE = "onfile-turns"
WORKFLOW = "onfile_carry_on"
NAME = "onfile"
LEFT = "left to others"
"""What a workflow answers whose run this process did not carry to where it stops."""
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
    sweep_seconds: float = 2.0
    """How often this process looks for runs that nobody queued, or whose worker was not seen."""


class DbosWorkers:
    """One process among those that share the runs.

    DBOS is one per process: a host that uses it already cannot have a second one.
    """

    def __init__(self, runner: TurnRunner, config: WorkersConfig) -> None:
        self.runner = runner
        self._config = config
        self._carrying: dict[str, asyncio.Task[str]] = {}
        self._queued: set[str] = set()
        self._suspects: dict[tuple[str, int | None], float] = {}
        self._sweeping: asyncio.Task[None] | None = None

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
        if work:
            self._sweeping = asyncio.create_task(self._keep_sweeping(), name="onfile: look for runs that are left")

    async def close(self) -> None:
        """Leave; what this process was carrying is left to the others at once."""
        under_way: list[asyncio.Task[Any]] = [*self._carrying.values()]
        if self._sweeping is not None:
            under_way.append(self._sweeping)
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
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
        await self._queue(run)

    async def decide(self, run_id: str, tool_call_id: str, *, approved: bool, reason: str = "") -> bool:
        """Approve or reject an action and queue the run; False when it was decided before."""
        first = await self.runner.decide(run_id, tool_call_id, approved=approved, reason=reason)
        if first:
            await self.queue(run_id)
        return first

    async def sweep(self) -> list[str]:
        """Queue what is left: runs that nobody queued, and those whose worker was not seen.

        Returns:
            The ids of the runs.
        """
        left = await self.runner.engine.left(lost_after=self.runner.lost_after)
        new = [run for run in left if _workflow_id(run) not in self._queued]
        for run in new:
            await self._queue(run)
        self._queued = {_workflow_id(run) for run in left}
        return [run.id for run in new] + await self._resume_stranded({run.id for run in left})

    async def take_over(self, executor_id: str) -> list[str]:
        """Give the runs of a worker that will not come back to the others, without waiting until it is lost.

        If it was slow and not dead, the journal fences it off: it can commit nothing to a run that
        somebody else carries on.

        Returns:
            The ids of the runs.
        """
        await self.runner.engine.disown(executor_id)
        left = await DBOS.list_workflows_async(status="PENDING", executor_id=executor_id, name=WORKFLOW)
        for workflow in left:
            await DBOS.resume_workflow_async(workflow.workflow_id, queue_name=QUEUE)
        return [_run_of(workflow.workflow_id) for workflow in left]

    async def idle(self) -> bool:
        """Tell whether nothing is queued or under way, anywhere."""
        statuses = ["ENQUEUED", "PENDING"]
        return not await DBOS.list_workflows_async(status=statuses, name=WORKFLOW, limit=1, load_input=False)

    async def _queue(self, run: Run) -> None:
        with SetWorkflowID(_workflow_id(run)):
            await DBOS.enqueue_workflow_async(QUEUE, self._carry_on, run.id)

    async def _claim(self, run_id: str) -> Journal:
        """Claim a run, for as long as it takes: an id that DBOS takes for done is not queued again."""
        runner = self.runner
        while True:
            try:
                # What this name had before is its own again: an executor id is of one process.
                return await runner.engine.claim(run_id, owner=runner.owner, lost_after=runner.lost_after)
            except RunUnavailable:
                raise
            except Exception as error:  # noqa: BLE001  # a database that is away is asked again
                _log.warning("run %s could not be claimed (%s); trying again", run_id, type(error).__name__)
            await asyncio.sleep(self._config.sweep_seconds)

    async def _carry(self, run_id: str) -> str:
        if run_id in self._carrying:
            return LEFT
        task = self._carrying[run_id] = asyncio.ensure_future(self._carry_here(run_id))
        try:
            await asyncio.wait({task})
            return LEFT if task.cancelled() else task.result()
        finally:
            task.cancel()
            del self._carrying[run_id]

    async def _carry_here(self, run_id: str) -> str:
        try:
            return (await self.runner.carry_on(await self._claim(run_id))).status
        except RunUnavailable:
            return LEFT  # another worker has it, or it waits, or has ended
        except Exception as error:  # noqa: BLE001  # DBOS would keep the words, which may hold facts; the run keeps the type
            _log.error(
                "run %s stopped with %s; it can be queued again", run_id, type(error).__name__
            )  # no traceback: its lines may hold content
            return "failed"

    async def _keep_sweeping(self) -> None:
        while True:
            try:
                await self.sweep()
            except Exception as error:  # noqa: BLE001  # a database that is away is asked again, for as long as it takes
                _log.warning("nobody looked for runs that are left (%s); trying again", type(error).__name__)
            await asyncio.sleep(self._config.sweep_seconds)

    async def _resume_stranded(self, left: set[str]) -> list[str]:
        """Queue again what DBOS gave to a worker that did not carry it for as long as makes it lost.

        It may have died with the run's id in its hands, or after the run, before it could tell DBOS. By this
        process's own monotonic clock: machines need not agree on the time.
        """
        version = self._config.application_version
        given = await DBOS.list_workflows_async(
            status="PENDING", name=WORKFLOW, app_version=version, load_input=False, load_output=False
        )
        now, before, self._suspects = time.monotonic(), self._suspects, {}
        resumed: list[str] = []
        for workflow in given:
            run_id = _run_of(workflow.workflow_id)
            if workflow.executor_id == self._config.executor_id or await self._is_carried(run_id, left):
                continue
            suspect = (workflow.workflow_id, workflow.dequeued_at)
            since = self._suspects.setdefault(suspect, before.get(suspect, now))
            if now - since >= self.runner.lost_after:
                await DBOS.resume_workflow_async(workflow.workflow_id, queue_name=QUEUE)
                resumed.append(run_id)
        return resumed

    async def _is_carried(self, run_id: str, left: set[str]) -> bool:
        run = None if run_id in left else await self.runner.engine.get(run_id)
        return run is not None and run.status == "running"


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
