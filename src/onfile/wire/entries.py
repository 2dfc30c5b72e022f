"""The entries of a read-back as JSON: camelCase names, times in UTC with a `Z`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal, overload

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic.alias_generators import to_camel
from pydantic.config import JsonDict

from ..digest import DigestEntry, OverriddenMemory
from ..records import MemoryOrigin

_SURROGATES = re.compile("[\ud800-\udfff]")


class _Wire(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)


class WireOrigin(_Wire):
    """Who recorded the fact and in which conversation, which may be gone since; null is unknown."""

    author: Literal["agent", "human"]
    thread_id: str | None
    run_id: str | None
    actor_ref: str | None


class WireOverride(_Wire):
    """A value of the same key that a narrower scope beat."""

    id: str
    scope: str
    text: str
    author: Literal["agent", "human"]


_EXAMPLE: JsonDict = {
    "id": "mem_01KXMRVAW0931T6B7DRGWD81YQ",
    "key": "answer-length",
    "text": "one sentence, please",
    "scope": "actor:ana",
    "origin": {"author": "agent", "threadId": "thread_41", "runId": "run_7", "actorRef": "ana"},
    "updatedAt": "2026-07-16T06:12:00Z",
    "pinned": True,
    "overrides": [
        {
            "id": "mem_01KRBRYBJ0YQPAMHHYVH8STWKX",
            "scope": "tenant:acme",
            "text": "three sentences",
            "author": "human",
        }
    ],
}


class WireEntry(_Wire):
    """One question on file: the answer that stands and the ones it beat."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    id: str
    key: str
    text: str
    scope: str
    origin: WireOrigin
    updated_at: datetime
    pinned: bool = Field(default=False, description="Absent when false.")
    overrides: list[WireOverride] = Field(default_factory=list[WireOverride], description="Absent when there are none.")


_ENTRIES = TypeAdapter(list[WireEntry])


def wire_entry(entry: DigestEntry) -> WireEntry:
    """Answer the wire form of one entry; `pinned` and `overrides` stay unset where they are to be absent."""
    present: dict[str, object] = {}
    if entry.pinned:
        present["pinned"] = True
    if entry.overrides:
        present["overrides"] = [_wire_override(beaten) for beaten in entry.overrides]
    return WireEntry.model_validate(
        {
            "id": _legible(entry.id),
            "key": _legible(entry.key),
            "text": _legible(entry.text),
            "scope": _legible(entry.scope),
            "origin": _wire_origin(entry.origin),
            "updated_at": _utc(entry.updated_at),
            **present,
        }
    )


def entries_json(entries: Sequence[DigestEntry]) -> bytes:
    """Serialise entries as a JSON array in UTF-8, members absent where the format says so."""
    return _ENTRIES.dump_json([wire_entry(entry) for entry in entries], by_alias=True, exclude_unset=True)


def _wire_origin(origin: MemoryOrigin) -> WireOrigin:
    # All four are set, so that a reader finds the same members on every entry: null means unknown.
    return WireOrigin(
        author="human" if origin.author == "human" else "agent",
        thread_id=_legible(origin.thread_id),
        run_id=_legible(origin.run_id),
        actor_ref=_legible(origin.actor_ref),
    )


def _wire_override(beaten: OverriddenMemory) -> WireOverride:
    return WireOverride(
        id=_legible(beaten.id),
        scope=_legible(beaten.scope),
        text=_legible(beaten.text),
        author="human" if beaten.author == "human" else "agent",
    )


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


@overload
def _legible(text: str) -> str: ...
@overload
def _legible(text: str | None) -> str | None: ...
def _legible(text: str | None) -> str | None:
    # Our stores refuse a lone surrogate; somebody else's may not, and UTF-8 cannot carry it.
    return _SURROGATES.sub("\ufffd", text) if text else text
