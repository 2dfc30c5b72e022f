"""Import lines: one fact as one line of JSON, checked where the bytes arrive and written back exactly."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from ..keys import fold_key
from ..records import Author, MemoryOrigin, MemoryRecord
from ..text import LONGEST_TOKEN, one_line, shown_scope, why_not_kept

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic_core import ErrorDetails

_MOMENT = "2026-09-01T12:00:00Z"
_SHOWN_NAME = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class BadLine:
    """A line that cannot be imported, and why, without a word of what it says."""

    line: int
    """Counted from 1."""
    reason: str


class LineRefused(ValueError):  # noqa: N818  # the refusal is the line's, not the program's
    """One line is not a fact that can be kept; `str()` says why and quotes none of it."""


def _token(value: str) -> str:
    if not value.strip():
        _refuse("is blank")
    return _keepable(value)


def _keepable(value: str) -> str:
    if (why := why_not_kept(value, most=LONGEST_TOKEN)) is not None:
        _refuse(why)
    return value


def _key(value: str) -> str:
    if not fold_key(key := one_line(value)):
        _refuse("is blank")
    return _keepable(key)


def _text(value: str) -> str:
    if not (text := one_line(value)):
        _refuse("is blank")
    if (why := why_not_kept(text)) is not None:
        _refuse(why)
    return text


def _moment(value: datetime) -> datetime:
    if value.tzinfo is None:
        # Guessing a zone would order two people's facts wrongly, and silently.
        _refuse(f"has no time zone; write it like {_MOMENT}")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        _refuse("is out of range")


def _refuse(reason: str) -> NoReturn:
    raise PydanticCustomError("onfile", "{reason}", {"reason": reason})  # noqa: EM101  # the kind of error, not its words


_Token = Annotated[str, AfterValidator(_token)]
_Reference = Annotated[str, AfterValidator(_keepable)]
_Moment = Annotated[datetime, AfterValidator(_moment)]


def _either(snake: str, camel: str) -> Any:
    return Field(default=None, validation_alias=AliasChoices(snake, camel))


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True)


class _OriginMember(_Strict):
    author: Author | None = None
    thread_id: _Reference | None = _either("thread_id", "threadId")
    run_id: _Reference | None = _either("run_id", "runId")
    actor_ref: _Reference | None = _either("actor_ref", "actorRef")


class FactLine(_Strict):
    """One fact as an operator hands it in: the four that matter are required, the rest is restored if given."""

    scope: _Token
    key: Annotated[str, AfterValidator(_key)]
    text: Annotated[str, AfterValidator(_text)]
    author: Author
    pinned: bool = False
    id: _Token | None = None
    updated_at: _Moment | None = _either("updated_at", "updatedAt")
    created_at: _Moment | None = _either("created_at", "createdAt")
    expires_at: _Moment | None = _either("expires_at", "expiresAt")
    origin: _OriginMember | None = None

    @model_validator(mode="after")
    def _agree(self) -> FactLine:
        if self.origin is not None and self.origin.author not in {None, self.author}:
            _refuse("author and origin.author differ")
        return self

    @property
    def identity(self) -> tuple[str, str]:
        """The scope and the folded key: what may stand only once."""
        return self.scope, fold_key(self.key)

    def to_record(self, *, new_id: str, now: datetime) -> MemoryRecord:
        """Answer the record that this line stands for.

        Args:
            new_id: The id it gets when the line names none.
            now: When it was last written when the line does not say so: its `created_at`, else this.
        """
        origin = self.origin or _OriginMember()
        return MemoryRecord(
            id=self.id or new_id,
            key=self.key,
            text=self.text,
            scope=self.scope,
            origin=MemoryOrigin(
                author=self.author, thread_id=origin.thread_id, run_id=origin.run_id, actor_ref=origin.actor_ref
            ),
            updated_at=self.updated_at or self.created_at or now,
            pinned=self.pinned,
        )


def parse_line(line: bytes | str) -> FactLine:
    """Read one line of JSON as a fact.

    The key and the text are put on one line each; times are converted to UTC.

    Raises:
        LineRefused: It is no such line, or gives a member twice; the reason names members and limits
            and quotes no value.
    """
    try:
        read = FactLine.model_validate_json(line)
        reasons = _repeated(line)
    except ValidationError as error:
        read, reasons = None, _reasons(error)
    # Raised out here so that pydantic's error, which knows the line, is not chained to it.
    if read is None or reasons:
        raise LineRefused("; ".join(reasons))
    return read


def line_members(record: MemoryRecord, *, created_at: datetime, expires_at: datetime | None = None) -> dict[str, Any]:
    """Answer a record as the members of a line, in the order they are written; absent what is empty."""
    members: dict[str, Any] = {
        "scope": record.scope,
        "key": record.key,
        "text": record.text,
        "author": record.origin.author,
    }
    if record.pinned:
        members["pinned"] = True
    members["id"] = record.id
    members["updated_at"] = _utc(record.updated_at)
    members["created_at"] = _utc(created_at)
    if expires_at is not None:
        members["expires_at"] = _utc(expires_at)
    references = {
        "thread_id": record.origin.thread_id,
        "run_id": record.origin.run_id,
        "actor_ref": record.origin.actor_ref,
    }
    if origin := {name: reference for name, reference in references.items() if reference is not None}:
        members["origin"] = origin
    return members


def dump_line(record: MemoryRecord, *, created_at: datetime, expires_at: datetime | None = None) -> str:
    """Write a record as the line that `parse_line` reads back to the same record, without a line break."""
    return json.dumps(line_members(record, created_at=created_at, expires_at=expires_at), ensure_ascii=False)


class _Members(list[tuple[str, Any]]):
    """The members of one JSON object as they stand in the line, those that are given twice included."""


_REPEATED = "is given more than once"
# Built once: making one for each line takes as long as reading it.
_DECODER = json.JSONDecoder(object_pairs_hook=_Members)


def _repeated(line: bytes | str) -> list[str]:
    """Name the members that a valid line gives more than once: a JSON parser takes one of them and says nothing."""
    members: _Members = _DECODER.decode(line if isinstance(line, str) else line.decode())
    reasons = _twice(members, "")
    for name, value in members:
        if isinstance(value, _Members):
            reasons += _twice(value, f"{name}.")
    return reasons


def _twice(members: _Members, place: str) -> list[str]:
    names = [name for name, _ in members]
    if len(set(names)) == len(names):
        return []
    return [f"{place}{name} {_REPEATED}" for name in dict.fromkeys(names) if names.count(name) > 1]


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _reasons(error: ValidationError) -> Sequence[str]:
    details = error.errors(include_url=False, include_input=False)
    return list(dict.fromkeys(_reason(detail) for detail in details))


_WORDS: Mapping[str, str] = {
    "missing": "is missing",
    "string_type": "must be a string",
    "bool_type": "must be true or false",
    "literal_error": 'must be "human" or "agent"',
    "model_type": "must be a JSON object",
    "string_unicode": "is not valid Unicode",
}
_SPELLINGS: Mapping[str, str] = {
    "updatedAt": "updated_at",
    "createdAt": "created_at",
    "expiresAt": "expires_at",
    "origin.threadId": "origin.thread_id",
    "origin.runId": "origin.run_id",
    "origin.actorRef": "origin.actor_ref",
}


def _reason(detail: ErrorDetails) -> str:
    kind = detail["type"]
    context: Mapping[str, Any] = detail.get("ctx", {})
    member = ".".join(str(part) for part in detail["loc"])
    if kind == "onfile":
        return f"{member} {context['reason']}".strip()
    if kind == "json_invalid":
        # The parser names a place and what it expected there, never what it found.
        return f"not JSON: {str(context.get('error', '')).replace('line 1 column', 'column')}"
    if kind == "extra_forbidden" and member in _SPELLINGS:
        # Known, so its other spelling is there as well.
        return f"{_SPELLINGS[member]} {_REPEATED}"
    if kind == "extra_forbidden":
        return f"unknown member {json.dumps(shown_scope(member[:_SHOWN_NAME]), ensure_ascii=False)}"
    if kind.startswith("datetime"):
        return f"{member} is not a date and time like {_MOMENT}"
    return f"{member or 'the line'} {_WORDS.get(kind, 'is not valid')}"
