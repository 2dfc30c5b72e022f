"""A digest as plain JSON values and back: what every journal and adapter keeps."""

# Read by hand, not by pydantic: a digest holds what a provider of anybody's returned, lone
# surrogates included, and must come back exactly; and `import onfile` loads nothing heavy.

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NoReturn, cast

from onfile.digest import DigestEntry, MemoryDigest, OverriddenMemory
from onfile.errors import OnfileError
from onfile.records import Author, MemoryOrigin

VERSION = 1

# Two lone surrogates in this order are two characters here and one in JSON. Where text holds them, a
# list of its pieces is kept in its place, cut between the two.
_PAIR = re.compile("(?<=[\ud800-\udbff])(?=[\udc00-\udfff])")


class DigestFormatError(OnfileError, ValueError):
    """What was kept as a digest cannot be read as one; the message names the member, not its value."""


def dump_digest(digest: MemoryDigest) -> dict[str, Any]:
    """Answer the digest as JSON values (dict, list, str, int, bool, None), versioned.

    What text holds is kept exactly by any JSON writer that escapes what is not ASCII, as
    `json.dumps` does by itself; lone surrogates included.

    Members that would be empty (`overrides`, a false `pinned`) are absent.
    """
    return {
        "version": VERSION,
        "scopes": [_plain(scope) for scope in digest.scopes],
        "entries": [_dump_entry(entry) for entry in digest.entries],
        "omitted": digest.omitted,
        "pinned_omitted": digest.pinned_omitted,
        "recalled": digest.recalled,
        "block": _plain(digest.block),
        "writable": digest.writable,
    }


def load_digest(data: object) -> MemoryDigest:
    """Read back what `dump_digest` answered, equal to the digest that was dumped.

    Raises:
        DigestFormatError: It is no digest, or a newer onfile wrote it.
    """
    members = _mapping(data, "digest")
    version = members.get("version")
    if not isinstance(version, int) or isinstance(version, bool):
        _wrong("version", "a whole number")
    if version != VERSION:
        msg = (
            f"this digest has version {version!r} and this onfile reads version {VERSION}; use the onfile that wrote it"
        )
        raise DigestFormatError(msg)
    return MemoryDigest(
        scopes=tuple(_text(scope, "scopes") for scope in _list(members, "scopes")),
        entries=tuple(_load_entry(entry) for entry in _list(members, "entries")),
        omitted=_count(members, "omitted"),
        pinned_omitted=_count(members, "pinned_omitted"),
        recalled=_flag(members, "recalled"),
        block=_text(members.get("block"), "block"),
        writable=_flag(members, "writable"),
    )


def _dump_entry(entry: DigestEntry) -> dict[str, Any]:
    origin = entry.origin
    dumped: dict[str, Any] = {
        "id": _plain(entry.id),
        "key": _plain(entry.key),
        "text": _plain(entry.text),
        "scope": _plain(entry.scope),
        "origin": {
            "author": origin.author,
            "thread_id": _plain(origin.thread_id),
            "run_id": _plain(origin.run_id),
            "actor_ref": _plain(origin.actor_ref),
        },
        "updated_at": _aware(entry.updated_at).isoformat(),
    }
    if entry.pinned:
        dumped["pinned"] = True
    if entry.overrides:
        dumped["overrides"] = [
            {
                "id": _plain(beaten.id),
                "scope": _plain(beaten.scope),
                "text": _plain(beaten.text),
                "author": beaten.author,
            }
            for beaten in entry.overrides
        ]
    return dumped


def _load_entry(data: object) -> DigestEntry:
    entry = _mapping(data, "entries")
    return DigestEntry(
        id=_text(entry.get("id"), "id"),
        key=_text(entry.get("key"), "key"),
        text=_text(entry.get("text"), "text"),
        scope=_text(entry.get("scope"), "scope"),
        origin=_load_origin(_mapping(entry.get("origin"), "origin")),
        updated_at=_moment(entry.get("updated_at")),
        pinned=_flag(entry, "pinned"),
        overrides=tuple(_load_override(beaten) for beaten in _list(entry, "overrides")),
    )


def _load_origin(origin: Mapping[str, object]) -> MemoryOrigin:
    return MemoryOrigin(
        author=_author(origin),
        thread_id=_optional(origin, "thread_id"),
        run_id=_optional(origin, "run_id"),
        actor_ref=_optional(origin, "actor_ref"),
    )


def _load_override(data: object) -> OverriddenMemory:
    beaten = _mapping(data, "overrides")
    return OverriddenMemory(
        id=_text(beaten.get("id"), "id"),
        scope=_text(beaten.get("scope"), "scope"),
        text=_text(beaten.get("text"), "text"),
        author=_author(beaten),
    )


def _plain(text: str | None) -> str | list[str] | None:
    return text if text is None or text.isascii() or not _PAIR.search(text) else _PAIR.split(text)


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _mapping(data: object, name: str) -> Mapping[str, object]:
    if not isinstance(data, Mapping):
        _wrong(name, "an object")
    return cast("Mapping[str, object]", data)


def _list(members: Mapping[str, object], name: str) -> Sequence[object]:
    value = members.get(name, ())
    if not isinstance(value, list | tuple):
        _wrong(name, "a list")
    return cast("Sequence[object]", value)


def _text(value: object, name: str) -> str:
    # One level, as it is dumped: a list in a list is nobody's text, however deep it goes.
    pieces = cast("list[object]", value) if isinstance(value, list) else [value]
    texts = [piece for piece in pieces if isinstance(piece, str)]
    if len(texts) < len(pieces):
        _wrong(name, "a string")
    return "".join(texts)


def _optional(members: Mapping[str, object], name: str) -> str | None:
    value = members.get(name)
    return None if value is None else _text(value, name)


def _count(members: Mapping[str, object], name: str) -> int:
    value = members.get(name, 0)
    if not isinstance(value, int) or isinstance(value, bool):
        _wrong(name, "a whole number")
    return value


def _flag(members: Mapping[str, object], name: str) -> bool:
    value = members.get(name, False)
    if not isinstance(value, bool):
        _wrong(name, "true or false")
    return value


def _author(members: Mapping[str, object]) -> Author:
    value = members.get("author")
    if value not in ("agent", "human"):
        _wrong("author", "agent or human")
    return value


def _moment(value: object) -> datetime:
    try:
        return _aware(datetime.fromisoformat(_text(value, "updated_at")))
    except ValueError:
        _wrong("updated_at", "an ISO 8601 time")


def _wrong(name: str, wanted: str) -> NoReturn:
    msg = f"this is no digest that dump_digest made: `{name}` must be {wanted}"
    raise DigestFormatError(msg) from None
