"""`onfile runs`: what turns did, what was in their prompts and why, and what they wait for."""

import importlib
import os
import sys
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from .database import opened
from .deciding import RunId, answer, approve, reject, unknown_run
from .failures import Failure
from .loop import finish
from .options import AsJson, Database, explained
from .output import counted, harmless, note, write, write_json

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from ..runs.assistant import Assistant
    from ..runs.runner import TurnResult, TurnRunner

runs_app = typer.Typer(no_args_is_help=True)

AssistantPath = Annotated[
    str,
    typer.Option(
        "--assistant", metavar="MODULE:NAME", help="Where your Assistant is. Example: --assistant shop.agent:assistant"
    ),
]


def add_to(application: typer.Typer) -> None:
    """Add the commands of this module."""
    application.add_typer(
        runs_app,
        name="runs",
        help="What turns did and why, and what they wait for. Example: [bold]onfile runs list[/]",
        rich_help_panel="Runs",
    )


def list_runs(
    *,
    status: Annotated[
        str | None, typer.Option("--status", help="Only these: ready, running, waiting, done, failed or cancelled.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many at most, newest first.")] = 50,
    as_json: AsJson = False,
    db: Database = "",
) -> None:
    """List runs, newest first, with what each one waits for.

    Example: [bold]onfile runs list --status waiting[/]
    """
    finish(_list(db, status, limit=limit, as_json=as_json))


def show(run: RunId, *, as_json: AsJson = False, db: Database = "") -> None:
    """Show a run's journal, and exactly what was in its prompt and why.

    Read from the journal alone: what is on file now, or what the code says now, does not matter.

    Example: [bold]onfile runs show run_01KGENV700JV36Q7GS2BKFWKJD[/]
    """
    finish(_show(db, run, as_json=as_json))


def cancel(run: RunId, *, db: Database = "") -> None:
    """End a run where it stands; whoever carries it can commit nothing more.

    Example: [bold]onfile runs cancel run_01KGENV700JV36Q7GS2BKFWKJD[/]
    """
    finish(_cancel(db, run))


def delete_thread(
    thread: Annotated[str, typer.Argument(metavar="THREAD", help="The thread, as 'onfile runs show' names it.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    db: Database = "",
) -> None:
    """Delete what was said in a thread, with its ended runs and their journals, for good; facts stay.

    Forgetting a fact takes it out of every run, but not what people and the model said in their own words.

    Example: [bold]onfile runs delete-thread thr_01KGENV700JV36Q7GS2BKFWKJD[/]
    """
    finish(_delete_thread(db, thread, yes=yes))


def resume(
    assistant: AssistantPath,
    run: Annotated[
        str | None, typer.Argument(metavar="RUN", help="One run; without it all that nobody carries or waits for.")
    ] = None,
    *,
    failed: Annotated[
        bool, typer.Option("--failed", help="Every run that failed, such as while a model was away.")
    ] = False,
    owner: Annotated[
        str | None,
        typer.Option(
            "--owner",
            metavar="NAME",
            help="Take over at once what the process of this name had, which died; TurnRunner's is 'local' by itself.",
        ),
    ] = None,
    db: Database = "",
) -> None:
    """Carry a run on from its last checkpoint, or every run that was left and waits for nobody.

    A run whose process was seen within the last half minute is left to it. One that stops again is told, and keeps
    none of the others from going on.

    Example: [bold]onfile runs resume --assistant shop.agent:assistant run_01KGENV700JV36Q7GS2BKFWKJD[/]
    """
    finish(_resume(db, run, assistant=load_assistant(assistant), owner=owner, failed=failed))


def worker(
    assistant: AssistantPath,
    name: Annotated[
        str,
        typer.Option("--name", help="Names this worker: the same after a restart, another one in every other process."),
    ],
    *,
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="How many runs at once.")] = 4,
    lost_after: Annotated[
        float, typer.Option("--lost-after", min=0.5, help="Take over the runs of workers not seen for so many seconds.")
    ] = 30,
    take_over: Annotated[
        str | None, typer.Option("--take-over", metavar="NAME", help="Take over this worker's runs at once.")
    ] = None,
    dbos: Annotated[bool, typer.Option("--dbos", help="Share runs through DBOS's queue.")] = False,
    system_database: Annotated[
        str,
        typer.Option(
            "--system-database", metavar="URL", help="DBOS's own tables; in the facts' PostgreSQL unless given."
        ),
    ] = "",
    db: Database = "",
) -> None:
    """Carry on runs beside other workers until you stop it; when one dies, the others take its runs over.

    Example: [bold]onfile runs worker --assistant shop.agent:assistant --name w1 --db postgresql://localhost/facts[/]
    """
    from .workers import Work, carry_on_runs

    work = Work(
        name=name,
        concurrency=concurrency,
        lost_after=lost_after,
        take_over=take_over,
        dbos=dbos,
        system_database=system_database,
    )
    finish(carry_on_runs(db, load_assistant(assistant), work))


for _name, _command in (
    ("list", list_runs),
    ("show", show),
    ("approve", approve),
    ("reject", reject),
    ("answer", answer),
    ("cancel", cancel),
    ("delete-thread", delete_thread),
    ("resume", resume),
    ("worker", worker),
):
    runs_app.command(_name, help=explained(_command))(_command)


def load_assistant(path: str) -> "Assistant":
    """Answer the Assistant at `module:name`, with the working directory's own modules in reach.

    Raises:
        Failure: There is none; the message says what is there instead.
    """
    from ..runs.assistant import Assistant

    module, _, name = path.partition(":")
    if not module or not name:
        msg = f"'{path}' names no object; write module:name, such as shop.agent:assistant"
        raise Failure(msg)
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = getattr(importlib.import_module(module), name, None)
    except ModuleNotFoundError as error:
        msg = f"there is no module {error.name} here"
        raise Failure(msg) from None
    if not isinstance(found, Assistant):
        msg = f"{path} is a {type(found).__name__}, not an onfile.runs.Assistant"
        raise Failure(msg)
    return found


async def _list(db: str, status: str | None, *, limit: int, as_json: bool) -> None:
    from ..runs.journal import RunStatus
    from ..runs.sql import SqlJournal
    from .run_page import run_as_json, write_line

    known: RunStatus | None = next((one for one in get_args(RunStatus) if one == status), None)
    if known is None and status is not None:
        msg = f"no run is ever {harmless(status)}; --status takes one of {', '.join(get_args(RunStatus))}"
        raise Failure(msg)
    async with opened(db) as provider:
        journal = SqlJournal(provider.engine)
        await journal.setup()
        runs = list(await journal.runs(status=known, limit=limit))
    if as_json:
        return write_json([run_as_json(run) for run in runs])
    if not runs:
        note("no runs")
    for run in runs:
        write_line(run)
    return None


async def _show(db: str, run_id: str, *, as_json: bool) -> None:
    from ..runs.sql import SqlJournal
    from .run_page import run_as_json, write_page

    async with opened(db) as provider:
        journal = SqlJournal(provider.engine)
        await journal.setup()
        run, checkpoints = await journal.get(run_id), await journal.checkpoints(run_id)
    if run is None:
        raise unknown_run(run_id)
    if as_json:
        return write_json(run_as_json(run, checkpoints))
    return write_page(run, checkpoints)


async def _cancel(db: str, run_id: str) -> None:
    from ..runs.sql import SqlJournal

    async with opened(db) as provider:
        journal = SqlJournal(provider.engine)
        await journal.setup()
        run = await journal.get(run_id)
        if run is None:
            raise unknown_run(run_id)
        if not await journal.cancel(run_id):
            msg = f"run {run_id} had ended before; it is {run.status}"
            raise Failure(msg)
    note(f"cancelled: run {run_id}")


async def _delete_thread(db: str, thread: str, *, yes: bool) -> None:
    from ..runs.sql import SqlJournal
    from .facts import make_sure

    async with opened(db) as provider:
        journal = SqlJournal(provider.engine)
        await journal.setup()
        there = len(await journal.read_thread(thread))
        if not there:
            msg = f"there is no thread {harmless(thread)} in this database; 'onfile runs show' names a run's"
            raise Failure(msg)
        if not yes:
            make_sure(f"Delete {counted(there, 'message')} with the runs of this thread that have ended?")
        count = await journal.delete_thread(thread)
    note(f"deleted: {counted(count, 'message')} of thread {harmless(thread)}, with its ended runs")


async def _resume(db: str, run_id: str | None, *, assistant: "Assistant", owner: str | None, failed: bool) -> None:
    from ..ids import new_id
    from ..runs.runner import TurnRunner
    from ..runs.sql import SqlJournal
    from .workers import engine_of

    async with opened(db) as provider:
        journal = SqlJournal(engine_of(assistant, provider.engine))
        await journal.setup()
        # Under a name that no process has, or a living one's runs would be taken for its own.
        runner = TurnRunner(assistant, journal, owner=owner or new_id("resume_"))
        if run_id is not None:
            stopped = [await _carried(run_id, _resumed(runner, run_id), alone=True)]
        elif failed:
            runs = await journal.runs(status="failed", limit=1000)
            stopped = [await _carried(run.id, _resumed(runner, run.id)) for run in runs]
        else:
            stopped = await _left(runner)
    if not stopped:
        note("no run was left to carry on")
    if any(stopped):
        raise typer.Exit(1)


async def _left(runner: "TurnRunner") -> list[bool]:
    """Carry on every run that nobody carries or waits for; answer of each whether it stopped."""
    await runner.engine.disown(runner.owner)
    stopped: list[bool] = []
    while (journal := await runner.engine.claim_next(owner=runner.owner, lost_after=runner.lost_after)) is not None:
        stopped.append(await _carried(journal.run_id, runner.carry_on(journal)))
    return stopped


async def _resumed(runner: "TurnRunner", run_id: str) -> "TurnResult":
    result = await runner.result(run_id)
    return result if result.status in ("waiting", "done") else await runner.resume(run_id)


async def _carried(run_id: str, turn: "Awaitable[TurnResult]", *, alone: bool = False) -> bool:
    """Tell how far a turn got; True where something stopped it, which keeps none of the others from going on."""
    from ..console.words import failure_words
    from ..errors import OnfileError

    try:
        result = await turn
    except Exception as error:  # whatever a model raises: the run is kept
        if os.environ.get("ONFILE_DEBUG") or (alone and isinstance(error, OnfileError)):
            raise
        note(harmless(f"{run_id}: stopped. {failure_words(error)}; the run is kept and can be resumed"))
        return True
    waits = f", waits for {result.pending.kind} of {result.pending.tool}" if result.pending else ""
    note(harmless(f"{result.run_id}: {result.status}{waits}"))
    if result.text:
        write(harmless(result.text) + "\n")
    return False
