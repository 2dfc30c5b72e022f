"""Import lines: read strictly, written exactly, refused without a word of what they say."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onfile.keys import fold_key
from onfile.records import MemoryOrigin, MemoryRecord
from onfile.text import one_line
from onfile.wire.lines import FactLine, LineRefused, dump_line, parse_line
from tests.facts import NOON

SECRET = "the-vault-opens-at-noon"
GOOD = {"scope": "tenant:acme", "key": "units", "text": "kilos", "author": "human"}


def parsed(**members: object) -> FactLine:
    return parse_line(json.dumps({name: value for name, value in (GOOD | members).items() if value is not ...}))


def refusal(**members: object) -> str:
    with pytest.raises(LineRefused) as refused:
        parsed(**members)
    return str(refused.value)


def record_of(line: FactLine) -> MemoryRecord:
    return line.to_record(new_id="mem_new", now=NOON)


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=60)
lines = texts.map(one_line).filter(bool)
references = st.none() | texts
records = st.builds(
    MemoryRecord,
    id=texts.filter(str.strip),
    key=lines.filter(fold_key),
    text=lines,
    scope=texts.filter(str.strip),
    origin=st.builds(
        MemoryOrigin,
        author=st.sampled_from(["agent", "human"]),
        thread_id=references,
        run_id=references,
        actor_ref=references,
    ),
    updated_at=st.datetimes(timezones=st.just(UTC)),
    pinned=st.booleans(),
)


moments = st.datetimes(timezones=st.just(UTC))


@given(record=records, created_at=moments, expires_at=st.none() | moments)
def test_what_is_written_is_read_back_exactly(record: MemoryRecord, created_at: datetime, expires_at: datetime | None):
    line = dump_line(record, created_at=created_at, expires_at=expires_at)

    read = parse_line(line.encode())

    assert "\n" not in line
    assert (record_of(read), read.created_at, read.expires_at) == (record, created_at, expires_at)


names = st.sampled_from([*GOOD, "id", "origin", "updated_at", "pinned"]) | st.text()
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=6),
)


@given(line=st.binary() | st.text() | json_values.map(json.dumps))
def test_whatever_a_line_holds_it_is_a_fact_or_a_refusal(line: bytes | str):
    try:
        read = parse_line(line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line)
    except LineRefused as refused:
        assert str(refused)
    else:
        assert read.scope.strip()
        assert fold_key(read.key)


def test_a_line_without_the_rest_gets_the_id_and_time_it_is_given():
    record = record_of(parsed())

    assert (record.id, record.updated_at, record.pinned) == ("mem_new", NOON, False)
    assert record.origin == MemoryOrigin(author="human")


def test_a_fact_was_last_written_when_it_was_made_if_the_line_says_no_more():
    assert record_of(parsed(created_at="2026-01-02T03:04:05Z")).updated_at == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_a_time_of_any_zone_is_kept_as_utc():
    line = parsed(updated_at="2026-03-01T10:00:00+05:30")

    assert line.updated_at == datetime(2026, 3, 1, 10, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    assert line.updated_at.utcoffset() == timedelta(0)


@pytest.mark.parametrize("given", ["2026-03-01T10:00:00", "2026-03-01", "yesterday", 1_700_000_000, "", True])
def test_a_time_without_a_zone_is_refused(given: object):
    assert refusal(updated_at=given).startswith("updated_at ")
    assert refusal(created_at=given).startswith("created_at ")


def test_a_time_that_utc_cannot_hold_is_refused():
    assert refusal(updated_at="0001-01-01T00:00:00+14:00") == "updated_at is out of range"


def test_key_and_text_are_put_on_one_line_and_the_scope_is_left_alone():
    line = parsed(scope=" tenant:acme ", key=" Fiscal\tYear ", text="starts\r\nin\u2028October\x1b ")

    assert (line.scope, line.key, line.text) == (" tenant:acme ", "Fiscal Year", "starts in October")


def test_the_camel_case_of_the_wire_is_read_as_well():
    origin = {"author": "human", "threadId": "t", "runId": "r", "actorRef": "a"}
    line = parsed(updatedAt="2026-01-01T00:00:00Z", createdAt="2026-01-01T00:00:00Z", origin=origin)

    assert record_of(line).origin == MemoryOrigin(author="human", thread_id="t", run_id="r", actor_ref="a")


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"scope": ...}, "scope is missing"),
        ({"key": ...}, "key is missing"),
        ({"text": ...}, "text is missing"),
        ({"author": ...}, "author is missing"),
        ({"scope": " \t"}, "scope is blank"),
        ({"scope": None}, "scope must be a string"),
        ({"key": "- _ —"}, "key is blank"),
        ({"text": "\n\t"}, "text is blank"),
        ({"text": 7}, "text must be a string"),
        ({"author": "robot"}, 'author must be "human" or "agent"'),
        ({"pinned": "yes"}, "pinned must be true or false"),
        ({"id": ""}, "id is blank"),
        ({"scope": "s" * 256}, "scope has 256 characters and a store keeps at most 255"),
        ({"key": "k" * 256}, "key has 256 characters and a store keeps at most 255"),
        ({"id": "i" * 256}, "id has 256 characters and a store keeps at most 255"),
        ({"text": "a\0b"}, "text holds a NUL character, which no store can keep"),
        ({"scope": "a\0b"}, "scope holds a NUL character, which no store can keep"),
        ({"origin": {"run_id": "\0"}}, "origin.run_id holds a NUL character, which no store can keep"),
        ({"origin": "ana"}, "origin must be a JSON object"),
        ({"origin": {"author": "agent"}}, "author and origin.author differ"),
        ({"note": "x"}, 'unknown member "note"'),
        ({"origin": {"note": "x"}}, 'unknown member "origin.note"'),
        ({"scope": "", "text": ""}, "scope is blank; text is blank"),
    ],
)
def test_what_is_wrong_with_a_line_is_said_in_words(members: dict[str, object], reason: str):
    assert refusal(**members) == reason


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ('"scope": "tenant:other"', "scope is given more than once"),
        ('"\\u0073cope": "tenant:acme"', "scope is given more than once"),
        (
            '"pinned": false, "pinned": true, "key": "units"',
            "key is given more than once; pinned is given more than once",
        ),
        ('"origin": {"run_id": "r", "run_id": "s"}', "origin.run_id is given more than once"),
        (
            '"updated_at": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z"',
            "updated_at is given more than once",
        ),
        ('"origin": {"threadId": "t", "thread_id": "t"}', "origin.thread_id is given more than once"),
        ('"note": 1, "note": 2', 'unknown member "note"'),
    ],
)
def test_a_member_that_a_line_gives_twice_is_refused_by_name_instead_of_the_last_one_taken(more: str, reason: str):
    line = json.dumps(GOOD)[:-1] + f", {more}}}"

    with pytest.raises(LineRefused) as refused:
        parse_line(line.encode())

    assert str(refused.value) == reason


def test_an_unknown_members_name_is_shown_so_that_it_cannot_disturb_a_terminal():
    assert refusal(**{"a\n\x9b31m\u202eb": 1}) == 'unknown member "a%0A%C2%9B31m%E2%80%AEb"'


@pytest.mark.parametrize(
    "line",
    ["", "{", "[]", "null", '"x"', "{}{}", '{"scope": "\\ud800"}', b'{"scope": "\xff"}', "{'scope': 'x'}", "NaN"],
)
def test_what_is_not_a_json_object_is_refused(line: bytes | str):
    with pytest.raises(LineRefused, match=r"not JSON|must be a JSON object"):
        parse_line(line)


@pytest.mark.parametrize(
    "line",
    [
        f'{{"scope": "{SECRET}", "key": ',
        json.dumps(GOOD | {"author": SECRET}),
        json.dumps(GOOD | {"text": [SECRET]}),
        json.dumps(GOOD | {"text": SECRET, "updated_at": SECRET}),
        json.dumps(GOOD | {"key": SECRET * 20, "pinned": SECRET}),
        json.dumps([SECRET]),
        SECRET,
    ],
)
def test_a_refusal_quotes_nothing_of_the_line(line: str):
    with pytest.raises(LineRefused) as refused:
        parse_line(line)

    assert SECRET not in f"{refused.value!r} {refused.value.__cause__!r} {refused.value.__context__!r}"


def test_ten_thousand_lines_are_read_in_a_second():
    line = json.dumps(GOOD | {"updated_at": "2026-01-01T00:00:00Z", "origin": {"run_id": "r"}}).encode()

    begun = time.perf_counter()
    for _ in range(10_000):
        parse_line(line)

    assert time.perf_counter() - begun < 1
