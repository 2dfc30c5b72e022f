"""Redaction: take a forgotten fact out of what journals and threads keep, and mark the place."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from onfile.block import build_memory_block
from onfile.digest import MemoryDigest
from onfile.keys import fold_key
from onfile.wire.digests import load_digest

ERASED = "[erased]"
FACTS = "facts"
"""The member in which a value names the `remember` calls it holds: tool call id to fact mark."""
_FOREIGN = frozenset({"args", "schema", "response", "message"})
"""Members whose shape is a tool's or a model's own: a parameter may well be called `facts` or `entries`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """One forgotten fact, named without telling what it was about."""

    record_id: str
    """Finds it in digests."""
    mark: str
    """Finds the `remember` calls about it; see `fact_mark`."""


def fact_mark(*, scope: str, key: str) -> str:
    """Answer 64 hex digits that stand for one question at one scope, however its key is spelled."""
    raw = f"{len(scope)}:{scope}{fold_key(key)}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(raw).hexdigest()


def erasure_of(*, record_id: str, scope: str, key: str) -> Erasure:
    """Name a fact that is being forgotten."""
    return Erasure(record_id=record_id, mark=fact_mark(scope=scope, key=key))


def erasures_of(digest: MemoryDigest) -> list[Erasure]:
    """Name every fact that a digest holds, beaten values included."""
    held = [(one, entry.key) for entry in digest.entries for one in (entry, *entry.overrides)]
    return [erasure_of(record_id=one.id, scope=one.scope, key=key) for one, key in held]


def record_mark(record_id: str) -> str:
    """Answer 64 hex digits that stand for one record."""
    return hashlib.sha256(f"id:{record_id}".encode("utf-8", "surrogatepass")).hexdigest()


def marks_in(value: Any) -> set[str]:
    """Answer the marks of every fact that a checkpoint's value holds: by these it is found again."""
    if isinstance(value, list):
        return set[str]().union(*map(marks_in, cast("list[Any]", value)))
    if not isinstance(value, dict):
        return set()
    members = cast("dict[str, Any]", value)
    if _is_digest(members):
        entries: list[dict[str, Any]] = members["entries"]
        beaten = [one for entry in entries for one in entry.get("overrides", ())]
        return {record_mark(one["id"]) for one in [*entries, *beaten]}
    facts = members.get(FACTS)
    if isinstance(facts, dict):
        return {mark for mark in cast("dict[str, Any]", facts).values() if mark is not None}
    return set[str]().union(*(marks_in(member) for name, member in members.items() if name not in _FOREIGN))


def redact(value: Any, erasures: Sequence[Erasure]) -> tuple[Any, int]:
    """Answer a JSON value without the forgotten facts, and in how many places they stood.

    Takes away the key and text of a digest's entry or beaten value with its line of the block, and
    the arguments and results of `remember` calls. Whatever else the conversation said stays.
    The value that is handed in is not changed.
    """
    if isinstance(value, list):
        done = [redact(one, erasures) for one in cast("list[Any]", value)]
        return [one for one, _ in done], sum(count for _, count in done)
    if not isinstance(value, dict):
        return value, 0
    members = cast("dict[str, Any]", value)
    if _is_digest(members):
        return _redact_digest(members, {erasure.record_id for erasure in erasures})
    facts = members.get(FACTS)
    if isinstance(facts, dict):
        marks = {erasure.mark for erasure in erasures}
        calls = {call for call, mark in cast("dict[str, Any]", facts).items() if mark in marks}
        return (_redact_calls(members, calls), len(calls)) if calls else (members, 0)
    erased, total = dict[str, Any](), 0
    for name, member in members.items():
        erased[name], count = (member, 0) if name in _FOREIGN else redact(member, erasures)
        total += count
    return erased, total


def _is_digest(value: Any) -> bool:
    return isinstance(value, dict) and {"version", "scopes", "entries", "block"} <= value.keys()


def _redact_digest(digest: dict[str, Any], ids: set[str]) -> tuple[dict[str, Any], int]:
    entries: list[dict[str, Any]] = []
    gone: list[dict[str, Any]] = []
    count = 0
    for entry in digest["entries"]:
        kept = dict(entry)
        if entry["id"] in ids:
            kept |= {"key": ERASED, "text": ERASED, "erased": True}
            count += 1
        if entry.get("overrides"):
            kept["overrides"] = [
                {**beaten, "text": ERASED, "erased": True} if beaten["id"] in ids else beaten
                for beaten in entry["overrides"]
            ]
            count += sum(beaten["id"] in ids for beaten in entry["overrides"])
        entries.append(kept)
        if kept != entry:
            gone.append(entry)
    if not count:
        return digest, 0
    erased = {**digest, "entries": entries, "erased": digest.get("erased", 0) + count}
    erased["block"] = _redact_block(digest, erased, gone)
    return erased, count


def _redact_block(before: Mapping[str, Any], after: Mapping[str, Any], gone: Iterable[dict[str, Any]]) -> str:
    """Change the lines that told of the fact and no others: the rest is still what the model read."""
    block: str = before["block"]
    shown = {entry["id"]: entry for entry in after["entries"]}
    for entry in gone:
        for old, new in zip(_lines(before, entry), _lines(after, shown[entry["id"]]), strict=True):
            if old not in block:
                # Rendered by another version's wording, in which its lines cannot be told apart.
                return _rendered(after)
            block = block.replace(old, new)
    return block


def _lines(digest: Mapping[str, Any], entry: dict[str, Any]) -> list[str]:
    alone = _rendered({**digest, "entries": [entry]}).split("\n")
    return [f"\n{line}\n" for line in alone if line.startswith(("- [", "    ↳ ["))]


def _rendered(digest: Mapping[str, Any]) -> str:
    loaded = load_digest(digest)
    partial = loaded.omitted > 0 or loaded.recalled
    return build_memory_block(entries=loaded.entries, writable=loaded.writable, partial=partial)


def _redact_calls(value: dict[str, Any], calls: set[str]) -> dict[str, Any]:
    erased: dict[str, Any] = _redact_parts(value, calls)
    erased[FACTS] = {call: None if call in calls else mark for call, mark in value[FACTS].items()}
    erased["erased"] = value.get("erased", 0) + len(calls)
    # A checkpoint about one call holds its arguments or its result as members of its own.
    if "args" in value:
        erased["args"] = {"key": ERASED, "fact": ERASED}
    if isinstance(value.get("message"), str):
        erased["message"] = ERASED
    return erased


def _redact_parts(value: Any, calls: set[str]) -> Any:
    if isinstance(value, list):
        return [_redact_parts(one, calls) for one in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    members = cast("dict[str, Any]", value)
    erased = {name: _redact_parts(member, calls) for name, member in members.items()}
    if members.get("tool_call_id") in calls:
        if members.get("part_kind") == "tool-call":
            erased["args"] = {"key": ERASED, "fact": ERASED}
        elif members.get("part_kind") == "tool-return":
            erased["content"] = ERASED
    return erased
