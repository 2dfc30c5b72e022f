"""What `onfile runs worker` does: carry runs on until somebody stops it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .database import opened
from .failures import Failure
from .output import note

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from sqlalchemy.engine import URL

    from ..runs.assistant import Assistant
    from ..runs.runner import TurnRunner
    from ..runs.sql import SqlJournal


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """How a worker is to work, as its command was told."""

    name: str
    concurrency: int
    lost_after: float
    take_over: str | None
    dbos: bool
    system_database: str
    """Where DBOS keeps its own tables; "" for the facts' PostgreSQL database."""


async def carry_on_runs(db: str, assistant: Assistant, work: Work) -> None:
    """Carry runs on, as one worker among others, until SIGINT or SIGTERM."""
    from ..runs.runner import TurnRunner
    from ..runs.sql import SqlJournal

    async with opened(db) as provider:
        journal = SqlJournal(engine_of(assistant, provider.engine))
        await journal.setup()
        runner = TurnRunner(assistant, journal, owner=work.name, lost_after=work.lost_after)
        if work.dbos:
            system = work.system_database or _system_database(provider.engine.url)
            await _until_stopped(_by_dbos(runner, work, system=system))
        else:
            await _until_stopped(_by_polling(runner, journal, work))
    note(f"worker {work.name} has stopped; the others carry on what it had")


def engine_of(assistant: Assistant, engine: Any) -> Any:
    """Answer the assistant's own engine where it is the same database: then a fact and its checkpoint are one."""
    own: Any = getattr(assistant.memory.provider, "engine", None) if assistant.memory is not None else None
    return own if own is not None and own.url == engine.url else engine


def _system_database(facts: URL) -> str:
    if facts.get_backend_name() != "postgresql":
        msg = "DBOS needs a database for its own tables: name it with --system-database, such as sqlite:///dbos.db"
        raise Failure(msg)
    return facts.set(drivername="postgresql").render_as_string(hide_password=False)


async def _by_polling(runner: TurnRunner, journal: SqlJournal, work: Work) -> None:
    from ..runs.polling import PollingWorker

    taken = await journal.disown(work.take_over) if work.take_over else 0
    _tell(work, taken)
    await PollingWorker(runner, concurrency=work.concurrency).work()


async def _by_dbos(runner: TurnRunner, work: Work, *, system: str) -> None:
    try:
        from ..runs.workers import DbosWorkers, WorkersConfig
    except ModuleNotFoundError:
        msg = "there is no DBOS here: pip install 'onfile[dbos]', or leave --dbos out"
        raise Failure(msg) from None
    config = WorkersConfig(system_database_url=system, executor_id=work.name, concurrency=work.concurrency)
    workers = DbosWorkers(runner, config)
    await workers.launch()
    try:
        taken = await workers.take_over(work.take_over) if work.take_over else []
        _tell(work, len(taken))
        await asyncio.Event().wait()
    finally:
        await workers.close()


def _tell(work: Work, taken: int) -> None:
    over = f"took over {taken} runs of {work.take_over}; " if work.take_over else ""
    note(f"worker {work.name}: {over}carrying on runs until you stop it with Ctrl-C")


async def _until_stopped(working: Coroutine[Any, Any, None]) -> None:
    task = asyncio.ensure_future(working)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):  # Windows: there Ctrl-C ends the loop itself
            loop.add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        if not task.cancelled():
            raise
