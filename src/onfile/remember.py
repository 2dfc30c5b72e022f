"""The `remember` tool: what the model sends, what is refused in words, and what it is told."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal, cast

from .keys import fold_key
from .records import MemoryRecord
from .text import one_line, shown_scope, shown_text, why_not_kept

MEMBERS = ("key", "fact")
DESCRIPTION = (
    "Record one durable fact about this user for later conversations. "
    "The same key again corrects it. Do not record what only matters now."
)
_KEY = "What the fact is about, in a few words, such as `fiscal-year`. One key answers one question."
_FACT = "The fact itself, one short line that can be understood on its own."
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "key": {"type": "string", "minLength": 1, "description": _KEY},
        "fact": {"type": "string", "minLength": 1, "description": _FACT},
    },
    "required": ["key", "fact"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryTool:
    """A tool as the model is offered it; hand name, description and schema to any provider."""

    name: str
    kind: Literal["memory"]
    description: str
    json_schema: dict[str, Any]
    """JSON Schema of the arguments: exactly `key` and `fact`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberOutcome:
    """What one `remember` call came to."""

    ok: bool
    message: str
    """What the model is told, as the call's result."""
    record: MemoryRecord | None = None
    """The record that stands now; None when the call was refused."""
    error: str | None = None
    """Why the call was refused, in words for the model."""
    unchanged: bool = False
    """True when nothing was written, because the same already stands or the call is a retry."""
    replaced: str | None = None
    """The text that this one replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A key and a text that may be kept: on one line, not blank, within the limits."""

    key: str
    text: str


def remember_tool() -> MemoryTool:
    """Answer the tool by which a model records a fact; it has no scope parameter."""
    return MemoryTool(name="remember", kind="memory", description=DESCRIPTION, json_schema=deepcopy(_SCHEMA))


def read_arguments(arguments: object, *, own: str) -> tuple[str, str] | str:
    """Answer the two strings that a model sent, or in words what is wrong with what it sent."""
    if not isinstance(arguments, Mapping):
        return "remember takes an object with the two members key and fact."
    members = cast("Mapping[object, Any]", arguments)
    # Refused by name rather than ignored: a model that asks for a wider scope must learn that it
    # got none, or it goes on believing that everybody was told.
    for member in members:
        if member not in MEMBERS:
            name = shown_text(str(member))[:40]
            place = f"[{shown_scope(own)}]"
            return f"remember takes only key and fact; it has no `{name}`. It records at {place} and nowhere else."
    for member in MEMBERS:
        if member not in members:
            return f"remember needs a {member}, and this call has none."
        if not isinstance(members[member], str):
            return f"The {member} must be a string."
    return members["key"], members["fact"]


def check_fact(*, key: str, text: str, max_key_chars: int, max_fact_chars: int) -> Fact | str:
    """Answer the key and text as they may be kept, or in words why they may not.

    Lengths are code points, measured after line breaks, tabs and controls became spaces. The same
    limits hold for people and for the model.
    """
    for name, value in (("key", key), ("fact", text)):
        if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # hosts pass what untyped code gave them
            return f"The {name} must be a string."
    fact = Fact(key=one_line(key), text=one_line(text))
    if not fact.text:
        return "The fact is blank; say it in one line."
    if not fold_key(fact.key):
        return "The key is blank; name in a few words what the fact is about."
    for name, value in (("key", fact.key), ("fact", fact.text)):
        why = why_not_kept(value)
        if why is not None:
            return f"The {name} {why}; send it without."
    for name, value, limit in (("key", fact.key, max_key_chars), ("fact", fact.text, max_fact_chars)):
        if len(value) > limit:
            return f"The {name} has {len(value)} characters and the limit is {limit}; say it shorter."
    return fact


def idempotency_key(*, run_id: str | None, tool_call_id: str | None) -> str | None:
    """Answer 64 hex digits that stand for one tool call of one run; None without both ids.

    Ids may contain any character, so their lengths go into the digest: `a` + `b:c` and `a:b` + `c`
    are two calls.
    """
    if run_id is None or tool_call_id is None:
        return None
    import hashlib  # loads OpenSSL, which only a run with ids needs

    raw = f"{len(run_id)}:{run_id}{tool_call_id}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(raw).hexdigest()


def placed(reason: str, *, scope: str) -> str:
    """Answer a refusal's reason so that it names the scope, whichever check or store worded it."""
    place = f"[{shown_scope(scope)}]"
    return reason if place in reason else f"{reason.rstrip(' .')}. Nothing was kept at {place}."


def refused(reason: str, *, own: str) -> RememberOutcome:
    """Answer the outcome of a call that a check or a verdict refused; the model is told its own scope."""
    return refused_by_store(placed(reason, scope=own), own=own)


def refused_by_store(reason: str, *, own: str) -> RememberOutcome:
    """Answer the outcome of a call that a store refused: its words as they are, and for the model its scope."""
    return RememberOutcome(ok=False, error=reason, message=f"Not recorded. {placed(reason, scope=own)}")


def remembered(record: MemoryRecord, *, unchanged: bool, replaced: str | None) -> RememberOutcome:
    """Answer the outcome of a call after which `record` stands."""
    line = f"[{shown_scope(record.scope)}] {shown_text(record.key)}: {shown_text(record.text)}"
    if unchanged:
        by = " A person stated it." if record.origin.author == "human" else ""
        message = f"Already on file, nothing changed: {line}.{by}"
    elif replaced is not None:
        message = f"Recorded {line}. It replaced: {shown_text(replaced)}"
    else:
        message = f"Recorded {line}. It replaced nothing."
    return RememberOutcome(ok=True, record=record, unchanged=unchanged, replaced=replaced, message=message)


def person_stands(record: MemoryRecord) -> str:
    """Say which note of a person's stands in the way of the model's."""
    return (
        f"A person stated what is on file under `{shown_text(record.key)}` at [{shown_scope(record.scope)}]: "
        f"{shown_text(record.text)}. It stands; only a person can change it. Tell the user about the conflict."
    )
