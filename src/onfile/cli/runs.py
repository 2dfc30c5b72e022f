"""`onfile runs`: what turns did, what was in their prompts and why, and what they wait for."""

import importlib
import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .database import opened
from .failures import Failure
from .loop import finish
from .options import AsJson, Database, explained
from .output import console, note, write, write_json

if TYPE_CHECKING:
    from ..runs.assistant import Assistant
    from ..runs.journal import Checkpoint, Run
    from ..runs.runner import TurnResult, TurnRunner

runs_app = typer.Typer(no_args_is_help=True)

RunId = Annotated[str, typer.Argument(metavar="RUN", help="The run's id, as 'onfile runs list' shows it.")]
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


def approve(run: RunId, *, db: Database = "") -> None:
    """Approve the action that a run waits for; 'onfile runs resume' or your worker carries it on.

    Example: [bold]onfile runs approve run_01KGENV700JV36Q7GS2BKFWKJD[/]
    """
    finish(_decide(db, run, approved=True, reason=""))


def reject(
    run: RunId,
    *,
    reason: Annotated[str, typer.Option("--reason", help="Told to the model.")] = "",
    db: Database = "",
) -> None:
    """Reject the action that a run waits for; the model is told so.

    Example: [bold]onfile runs reject run_01KGENV700JV36Q7GS2BKFWKJD --reason "wrong order"[/]
    """
    finish(_decide(db, run, approved=False, reason=reason))


def cancel(run: RunId, *, db: Database = "") -> None:
    """End a run where it stands; whoever carries it can commit nothing more.

    Example: [bold]onfile runs cancel run_01KGENV700JV36Q7GS2BKFWKJD[/]
    """
    finish(_cancel(db, run))


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
        str, typer.Option("--owner", help="The name of the process whose runs are taken over after it died.")
    ] = "local",
    db: Database = "",
) -> None:
    """Carry a run on from its last checkpoint, or every run that was left and waits for nobody.

    A run whose worker was seen within the last half minute is left to it.

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
    ("cancel", cancel),
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
    from ..runs.sql import SqlJournal

    async with opened(db) as provider:
        journal = SqlJournal(provider.engine)
        await journal.setup()
        runs: list[Run] = list(await journal.runs(status=status, limit=limit))  # pyright: ignore[reportArgumentType]  # any other word matches no run
    if as_json:
        return write_json([_json(run) for run in runs])
    if not runs:
        note("no runs")
    for run in runs:
        holds = f", waits for {run.waits_for}" if run.waits_for else ""
        holds = f", carried by {run.owner}" if run.owner else holds
        write(f"{run.id}  {run.created_at[:19]}  {run.status}{holds}  {run.ctx.actor.id}: {_short(run.text)}\n")
    return None


async def _show(db: str, run_id: str, *, as_json: bool) -> None:
    from ..runs.account import account_of
    from ..runs.sql import SqlJournal

    async with opened(db) as provider:
        journal = SqlJournal(provider.engine)
        await journal.setup()
        run, checkpoints = await journal.get(run_id), await journal.checkpoints(run_id)
    if run is None:
        raise _unknown(run_id)
    account = account_of(checkpoints)
    if as_json:
        kept = [{"position": one.position, "name": one.name, "value": one.value} for one in checkpoints]
        told = {"prompt": account.prompt.text, "why": list(account.reasons), "tools": list(account.tools)}
        return write_json(_json(run) | told | {"journal": kept})
    page = console()
    page.print(f"{run.id}: {run.status}" + (f", waits for {run.waits_for}" if run.waits_for else ""), style="bold")
    page.print(f"{run.ctx.actor.id} said: {run.text}")
    if run.output:
        page.print(f"The assistant said: {run.output['text']}")
    page.print("\nJournal", style="bold")
    for one in checkpoints:
        page.print(f"{one.position:>3}  {one.name}  {_summary(one)}".rstrip())
    page.print("\nWhat was in the prompt", style="bold")
    page.print(account.prompt.text or "(nothing)")
    page.print("\nWhy", style="bold")
    for reason in account.reasons:
        page.print(f"- {reason}")
    page.print(f"- On offer: {', '.join(account.tools) or 'no tools'}.")
    return None


async def _decide(db: str, run_id: str, *, approved: bool, reason: str) -> None:
    from ..runs.pending import pending_call
    from ..runs.sql import SqlJournal

    async with opened(db) as provider:
        journal = SqlJournal(provider.engine)
        await journal.setup()
        run = await journal.get(run_id)
        if run is None:
            raise _unknown(run_id)
        pending = pending_call(run, await journal.checkpoints(run_id))
        if pending is None or pending.kind != "approval":
            msg = f"run {run_id} waits for no approval; it is {run.status}"
            raise Failure(msg)
        answer = {"approved": approved, "reason": reason}
        if not await journal.signal(run_id, f"approval:{pending.tool_call_id}", answer):
            msg = f"run {run_id} was decided by somebody else a moment ago; the first answer holds"
            raise Failure(msg)
    done = "approved" if approved else "rejected"
    note(f"{done}: {pending.tool} of run {run_id}; a worker carries it on, or 'onfile runs resume' does")


async def _cancel(db: str, run_id: str) -> None:
    from ..runs.sql import SqlJournal

    async with opened(db) as provider:
        journal = SqlJournal(provider.engine)
        await journal.setup()
        run = await journal.get(run_id)
        if run is None:
            raise _unknown(run_id)
        if not await journal.cancel(run_id):
            msg = f"run {run_id} had ended before; it is {run.status}"
            raise Failure(msg)
    note(f"cancelled: run {run_id}")


async def _resume(db: str, run_id: str | None, *, assistant: "Assistant", owner: str, failed: bool) -> None:
    from ..runs.runner import TurnRunner
    from ..runs.sql import SqlJournal
    from .workers import engine_of

    async with opened(db) as provider:
        journal = SqlJournal(engine_of(assistant, provider.engine))
        await journal.setup()
        runner = TurnRunner(assistant, journal, owner=owner)
        results: list[TurnResult]
        if run_id is not None:
            results = [await _resumed(runner, run_id)]
        elif failed:
            results = [await _resumed(runner, run.id) for run in await journal.runs(status="failed", limit=1000)]
        else:
            results = await runner.recover()
    for result in results:
        waits = f", waits for {result.pending.kind} of {result.pending.tool}" if result.pending else ""
        note(f"{result.run_id}: {result.status}{waits}")
        if result.text:
            write(result.text + "\n")
    if not results:
        note("no run was left to carry on")


async def _resumed(runner: "TurnRunner", run_id: str) -> "TurnResult":
    result = await runner.result(run_id)
    if result.status in ("waiting", "done"):
        return result
    # Not from an owner who was seen: a worker's run is not taken out of its hands by mistake.
    return await runner.carry_on(await runner.engine.claim(run_id, owner=runner.owner, lost_after=runner.lost_after))


def _summary(checkpoint: "Checkpoint") -> str:
    """Answer what is worth a glance, in a few words."""
    value: Any = checkpoint.value
    head = checkpoint.name.split(":")[0]
    if head == "tool":
        return _short(value["message"])
    if checkpoint.name.startswith("persist:toolcall:"):
        return f"{value['tool']} ({value['kind']})"
    if head == "approval":
        return "approved" if value["approved"] else "rejected"
    if checkpoint.name == "run:prompt-stages":
        return ", ".join(value["stages"])
    return ""


def _json(run: "Run") -> dict[str, Any]:
    return {
        "id": run.id,
        "status": run.status,
        "waitsFor": run.waits_for,
        "actor": run.ctx.actor.id,
        "threadId": run.ctx.thread_id,
        "text": run.text,
        "output": run.output,
        "error": run.error,
        "createdAt": run.created_at,
        "updatedAt": run.updated_at,
    }


def _short(text: str, limit: int = 80) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _unknown(run_id: str) -> Failure:
    return Failure(f"there is no run {run_id} in this database; 'onfile runs list' shows those there are")
