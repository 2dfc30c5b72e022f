"""What `onfile runs list` and `onfile runs show` tell of a run: its journal, its prompt, and what it waits for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..runs.account import account_of
from ..runs.pending import PendingCall, pending_call
from ..runs.tools import read_questions
from .output import console, harmless, write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..runs.journal import Checkpoint, Run


def write_line(run: Run) -> None:
    """Print one run as a list shows it."""
    write(harmless(f"{run.id}  {run.created_at[:19]}  {_standing(run)}  {run.ctx.actor.id}: {_short(run.text)}") + "\n")


def write_page(run: Run, checkpoints: Sequence[Checkpoint]) -> None:
    """Print what happened in a run, what was in its prompt, and why.

    The prompt is printed line for line as it was sent; only what would move a terminal's cursor is spelled out.
    """
    account, page = account_of(checkpoints), console()

    def heading(words: str) -> None:
        page.print(f"\n{words}", style="bold", soft_wrap=True)

    def line(words: str) -> None:
        write(harmless(words) + "\n")

    page.print(harmless(f"{run.id}: {_standing(run)}"), style="bold", soft_wrap=True)
    line(f"In thread {run.ctx.thread_id or f'run:{run.id}'}")
    line(f"{run.ctx.actor.id} said: {run.text}")
    if run.output:
        line(f"The assistant said: {run.output['text']}")
    if (pending := pending_call(run, checkpoints)) is not None:
        heading("What it waits for")
        for words in _asked(run, pending):
            line(words)
    heading("Journal")
    for one in checkpoints:
        line(f"{one.position:>3}  {one.name}  {_summary(one)}".rstrip())
    heading("What was in the prompt")
    line(account.prompt.text or "(nothing)")
    heading("Why")
    for reason in account.reasons:
        line(f"- {reason}")
    line(f"- On offer: {', '.join(account.tools) or 'no tools'}.")


def run_as_json(run: Run, checkpoints: Sequence[Checkpoint] | None = None) -> dict[str, Any]:
    """Answer a run as a command prints it, with its account and journal where they are handed in."""
    kept = {
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
    if checkpoints is None:
        return kept
    account = account_of(checkpoints)
    journal = [{"position": one.position, "name": one.name, "value": one.value} for one in checkpoints]
    told = {"prompt": account.prompt.text, "why": list(account.reasons), "tools": list(account.tools)}
    return kept | told | {"journal": journal}


def _standing(run: Run) -> str:
    if run.status == "failed":
        return f"failed, stopped by {run.error}"
    if run.owner:
        return f"{run.status}, carried by {run.owner}"
    return f"{run.status}, waits for {run.waits_for}" if run.waits_for else run.status


def _asked(run: Run, pending: PendingCall) -> list[str]:
    if pending.kind == "answer":
        asked = read_questions(pending.arguments)
        return [f"{one.question} [{one.default}]" for one in asked] + [
            f"Answer with 'onfile runs answer {run.id}', in its conversation, or over HTTP."
        ]
    arguments = json.dumps(pending.arguments, ensure_ascii=False)
    return [
        f"{pending.tool} {arguments}",
        f"Decide it with 'onfile runs approve {run.id}' or 'onfile runs reject {run.id}'.",
    ]


def _summary(checkpoint: Checkpoint) -> str:
    """Answer what is worth a glance, in a few words."""
    value: Any = checkpoint.value
    head = checkpoint.name.split(":")[0]
    if head == "tool":
        return _short(value["message"])
    if checkpoint.name.startswith("persist:toolcall:"):
        return f"{value['tool']} ({value['kind']})"
    if head == "approval":
        reason = _short(value.get("reason") or "")
        return ("approved" if value["approved"] else "rejected") + (f": {reason}" if reason else "")
    if checkpoint.name == "run:prompt-stages":
        return ", ".join(value["stages"])
    return ""


def _short(text: str, limit: int = 80) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
