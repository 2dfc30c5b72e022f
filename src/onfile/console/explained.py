"""Why a turn answered as it did, in words, from its journal and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..digest import DigestEntry, MemoryDigest
from ..runs.account import account_of
from ..runs.journal import Checkpoint, Json
from ..wire.digests import load_digest
from ..wire.why import FITS, PINNED, WhyLine
from .views import legible
from .words import call_words

RECALLED = "recalled for this message"
CHOSEN = "by scope and date, within the ceiling"
_STEPS = {
    "persist:user": "kept your message",
    "load:thread": "read the conversation again",
    "run:prompt-stages": "noted which parts the prompt has",
    "persist:run:start": "kept the prompt’s fixed part and the tools on offer",
    "memory:digest": "resolved what is on file",
    "retrieve": "looked up passages",
    "skills:catalog": "resolved the procedures on offer",
    "persist:run:end": "ended the turn",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StepView:
    """One checkpoint in words."""

    position: int
    name: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerView:
    """Everything that explains one answer."""

    digest: MemoryDigest | None
    """What was resolved, with the block as it was sent; None where the turn had no memory or did not get that far."""
    facts: tuple[WhyLine, ...]
    erased: int
    """How many values were forgotten since, and are gone from here as well."""
    reasons: tuple[str, ...]
    tools: tuple[str, ...]
    prompt: str
    steps: tuple[StepView, ...]


def explain_run(checkpoints: Sequence[Checkpoint]) -> AnswerView:
    """Explain a run from as much of its journal as there is."""
    account = account_of(checkpoints)
    kept: Json = next((one.value for one in checkpoints if one.name == "memory:digest"), None)
    digest = load_digest(kept) if kept else None
    return AnswerView(
        digest=digest,
        facts=tuple(_fact(entry, digest) for entry in digest.entries) if digest is not None else (),
        erased=kept.get("erased", 0) if kept else 0,
        reasons=tuple(legible(reason) for reason in account.reasons),
        tools=tuple(legible(tool) for tool in account.tools),
        prompt=account.prompt.text,
        steps=tuple(_steps(checkpoints)),
    )


def _fact(entry: DigestEntry, digest: MemoryDigest) -> WhyLine:
    if entry.pinned:
        reason = PINNED
    elif digest.recalled:
        reason = RECALLED
    else:
        reason = CHOSEN if digest.omitted else FITS
    return WhyLine(
        id=entry.id,
        key=legible(entry.key),
        text=legible(entry.text),
        scope=legible(entry.scope),
        author=entry.origin.author,
        pinned=entry.pinned,
        beats=entry.overrides,
        included=True,
        reason=reason,
    )


def _steps(checkpoints: Sequence[Checkpoint]) -> list[StepView]:
    calls: dict[str, Any] = {}
    steps: list[StepView] = []
    for one in checkpoints:
        name = one.name
        if name.startswith("persist:toolcall:"):
            calls[name.removeprefix("persist:toolcall:")] = one.value
        words = _STEPS.get(name) or _words(name, one.value, calls)
        steps.append(StepView(position=one.position, name=legible(name), words=legible(words)))
    return steps


def _words(name: str, value: Json, calls: dict[str, Any]) -> str:
    head, _, rest = name.partition(":")
    if head == "llm":
        return "asked the model"
    if head == "approval":
        return "a person approved it" if value.get("approved") else "a person rejected it"
    if head == "answer":
        return "a person answered"
    if head == "tool":
        call = calls.get(rest, {})
        outcome = "success" if value["ok"] else "failed"
        return call_words(call.get("tool", ""), call.get("args"), outcome=outcome, result=value["message"])
    kind, _, call_id = rest.partition(":")
    if kind == "assistant":
        return "kept what the model said"
    if kind == "toolcall":
        call = calls.get(call_id, {})
        return f"the model called {call.get('tool', '')} ({call.get('kind', '')})"
    return "kept the result in the conversation"
