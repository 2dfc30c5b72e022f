"""`onfile runs approve`, `reject` and `answer`: what a person says to a run that waits for them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .database import opened
from .failures import Failure
from .loop import finish
from .options import Database
from .output import counted, note

if TYPE_CHECKING:
    from ..runs.pending import PendingCall
    from ..runs.sql import SqlJournal

RunId = Annotated[str, typer.Argument(metavar="RUN", help="The run's id, as 'onfile runs list' shows it.")]


def approve(run: RunId, *, db: Database = "") -> None:
    """Approve the action that a run waits for; 'onfile runs resume' or your worker carries it on.

    Example: [bold]onfile runs approve run_01KGENV700JV36Q7GS2BKFWKJD[/]
    """
    finish(_decide(db, run, approved=True))


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


def answer(
    run: RunId,
    answers: Annotated[
        list[str] | None,
        typer.Argument(metavar="ANSWER...", help='One per question, in their order; "" leaves one at its default.'),
    ] = None,
    *,
    skip: Annotated[bool, typer.Option("--skip", help="Leave every question at its default.")] = False,
    db: Database = "",
) -> None:
    """Answer what a run asks; 'onfile runs show' tells the questions and their defaults.

    Example: [bold]onfile runs answer run_01KGENV700JV36Q7GS2BKFWKJD "three" ""[/]
    """
    if bool(answers) == skip:
        msg = "give an answer to each question, or --skip to leave them all at their defaults"
        raise Failure(msg)
    finish(_answer(db, run, answers or None))


async def _decide(db: str, run_id: str, *, approved: bool, reason: str = "") -> None:
    async with opened(db) as provider:
        journal, pending = await _pending(provider.engine, run_id, wanted="approval")
        await _signal(journal, run_id, f"approval:{pending.tool_call_id}", {"approved": approved, "reason": reason})
    done = "approved" if approved else "rejected"
    note(f"{done}: {pending.tool} of run {run_id}; a worker carries it on, or 'onfile runs resume' does")


async def _answer(db: str, run_id: str, answers: Sequence[str] | None) -> None:
    from ..runs.tools import read_questions

    async with opened(db) as provider:
        journal, pending = await _pending(provider.engine, run_id, wanted="answer")
        asked = len(read_questions(pending.arguments))
        if answers is not None and len(answers) != asked:
            msg = (
                f"run {run_id} asks {counted(asked, 'question')}, and here {'is' if len(answers) == 1 else 'are'} "
                f"{counted(len(answers), 'answer')}; 'onfile runs show {run_id}' tells the questions"
            )
            raise Failure(msg)
        kept = None if answers is None else [said.strip() or None for said in answers]
        await _signal(journal, run_id, f"answer:{pending.tool_call_id}", {"answers": kept})
    note(f"answered: run {run_id}; a worker carries it on, or 'onfile runs resume' does")


async def _pending(engine: Any, run_id: str, *, wanted: str) -> "tuple[SqlJournal, PendingCall]":
    from ..runs.pending import pending_call
    from ..runs.sql import SqlJournal

    journal = SqlJournal(engine)
    await journal.setup()
    run = await journal.get(run_id)
    if run is None:
        raise unknown_run(run_id)
    pending = pending_call(run, await journal.checkpoints(run_id))
    words = {"approval": "an approval", "answer": "answers"}
    if pending is None:
        msg = f"run {run_id} waits for no {wanted}; it is {run.status}"
        raise Failure(msg)
    if pending.kind != wanted:
        command = "answer" if pending.kind == "answer" else "approve"
        msg = (
            f"run {run_id} waits for {words[pending.kind]}, not for {words[wanted]}; 'onfile runs show {run_id}' tells "
            f"what it asks, and 'onfile runs {command} {run_id}' is the command"
        )
        raise Failure(msg)
    return journal, pending


async def _signal(journal: "SqlJournal", run_id: str, name: str, value: Any) -> None:
    if not await journal.signal(run_id, name, value):
        msg = f"run {run_id} was decided by somebody else a moment ago; the first answer holds"
        raise Failure(msg)


def unknown_run(run_id: str) -> Failure:
    """Answer the complaint about a run that is not there."""
    return Failure(f"there is no run {run_id} in this database; 'onfile runs list' shows those there are")
