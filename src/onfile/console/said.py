"""What a thread's turns show on a page: what was said, what was called, and what still waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ..runs.journal import ENDED, Run, ThreadEntry
from ..runs.pending import PendingCall
from ..runs.tools import Question, read_questions
from .views import legible
from .words import call_words


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One piece of a reply: words of the model, or a line about a call of it."""

    words: str
    outcome: str = ""
    """`success`, `failed` or `denied` for a call; empty for words and for a call under way."""
    call_id: str = ""
    """Empty for words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingView:
    """What a turn asks a person."""

    call_id: str
    words: str
    questions: tuple[Question, ...]
    """Empty where an action waits for an approval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnView:
    """One turn on a page."""

    run_id: str
    said: str
    parts: tuple[Part, ...]
    status: str
    moment: str
    pending: PendingView | None = None
    failure: str = ""
    """What stopped it, in words; the turn is kept."""
    out_of_steps: bool = False

    @property
    def under_way(self) -> bool:
        """Whether some process carries it, or has to."""
        return self.status in ("ready", "running")


def turn_view(run: Run, entries: Sequence[ThreadEntry], pending: PendingCall | None) -> TurnView:
    """Spell out one turn from the messages that its thread keeps."""
    results = {
        entry.content["message"]["tool_call_id"]: cast("dict[str, Any]", entry.content["message"])
        for entry in entries
        if entry.kind == "tool"
    }
    parts: list[Part] = []
    for entry in entries:
        if entry.kind == "assistant":
            parts += _parts(entry.content["message"]["parts"], results, open_=run.status not in ENDED)
    return TurnView(
        run_id=run.id,
        said=legible(run.text),
        parts=tuple(parts),
        status=run.status,
        moment=run.created_at,
        failure=f"The model did not answer ({run.error})." if run.status == "failed" else "",
        pending=None if pending is None else pending_view(pending),
        out_of_steps=bool(run.output) and run.output.get("stopped") == "max_steps",
    )


def pending_view(pending: PendingCall) -> PendingView:
    """Spell out what a person is asked."""
    questions: Sequence[Question] = ()
    if pending.kind == "answer":
        questions = read_questions(pending.arguments)
    return PendingView(
        call_id=pending.tool_call_id,
        words=legible(call_words(pending.tool, pending.arguments)),
        questions=tuple(Question(question=legible(q.question), default=legible(q.default)) for q in questions),
    )


def _parts(parts: Sequence[Mapping[str, Any]], results: Mapping[str, Mapping[str, Any]], *, open_: bool) -> list[Part]:
    shown: list[Part] = []
    for part in parts:
        if part["part_kind"] == "text" and part["content"].strip():
            shown.append(Part(words=legible(part["content"].strip())))
        elif part["part_kind"] == "tool-call":
            result = results.get(part["tool_call_id"])
            if result is None and open_:
                continue  # told by what the turn waits for
            outcome = str(result["outcome"]) if result is not None else ""
            content = str(result["content"]) if result is not None else ""
            words = call_words(part["tool_name"], _arguments(part["args"]), outcome=outcome, result=content)
            shown.append(Part(words=legible(words), outcome=outcome or "failed", call_id=part["tool_call_id"]))
    return shown


def _arguments(args: Any) -> Any:
    import json

    if not isinstance(args, str):
        return args
    try:
        return json.loads(args)
    except ValueError:
        return None
