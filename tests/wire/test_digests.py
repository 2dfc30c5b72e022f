"""A digest as JSON values and back: what a journal keeps is what the run had."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onfile import MemoryDigest, OnfileError, build_memory_block, dump_digest, load_digest, resolve_memory_digest
from tests.facts import NOON, fact
from tests.strategies import SCOPES, any_text, records


def digest(*facts, **members) -> MemoryDigest:
    resolved = resolve_memory_digest(records=facts, scopes=SCOPES)
    block = build_memory_block(entries=resolved.entries, writable=True, partial=False)
    return replace(resolved, block=block, writable=True, **members)


def through_json(value: MemoryDigest) -> MemoryDigest:
    return load_digest(json.loads(json.dumps(dump_digest(value))))


def test_a_digest_comes_back_as_it_was():
    whole = digest(
        fact("請求先", "東京", pinned=True),
        fact("請求先", "大阪", scope="global", author="human"),
        omitted=3,
        pinned_omitted=1,
        recalled=True,
    )

    assert through_json(whole) == whole


def test_the_form_is_fixed_because_journals_outlive_releases():
    assert dump_digest(
        digest(
            fact("a", "x", id="m1", pinned=True),
            fact("a", "y", id="m2", scope="global", author="human"),
            fact("b", "z", id="m3"),
        )
    ) == {
        "version": 1,
        "scopes": ["actor:ana", "depot:north", "tenant:acme", "global"],
        "entries": [
            {
                "id": "m1",
                "key": "a",
                "text": "x",
                "scope": "actor:ana",
                "origin": {"author": "agent", "thread_id": "t1", "run_id": "r1", "actor_ref": "ana"},
                "updated_at": "2026-09-01T12:00:00+00:00",
                "pinned": True,
                "overrides": [{"id": "m2", "scope": "global", "text": "y", "author": "human"}],
            },
            {
                "id": "m3",
                "key": "b",
                "text": "z",
                "scope": "actor:ana",
                "origin": {"author": "agent", "thread_id": "t1", "run_id": "r1", "actor_ref": "ana"},
                "updated_at": "2026-09-01T12:00:00+00:00",
            },
        ],
        "omitted": 0,
        "pinned_omitted": 0,
        "recalled": False,
        "block": digest(
            fact("a", "x", pinned=True), fact("a", "y", scope="global", author="human"), fact("b", "z")
        ).block,
        "writable": True,
    }


@given(
    st.lists(records(keys=any_text), max_size=6),
    st.lists(any_text.filter(str.strip), max_size=3),
    st.integers(0, 6),
    st.booleans(),
    st.booleans(),
)
def test_any_digest_comes_back_equal_through_json(drawn, scopes, ceiling, ranked, writable):
    drawn = [replace(row, scope=scope) for row, scope in zip(drawn, [*scopes, *SCOPES, *SCOPES], strict=False)]
    resolved = resolve_memory_digest(records=drawn, scopes=[*scopes, *SCOPES], max_memories=ceiling, ranked=ranked)
    block = build_memory_block(entries=resolved.entries, writable=writable, partial=resolved.omitted > 0)
    whole = replace(resolved, block=block, writable=writable)

    assert through_json(whole) == whole
    assert load_digest(dump_digest(whole)) == whole


@given(any_text)
def test_any_text_in_any_place_comes_back(text):
    origin = replace(fact().origin, thread_id=text, run_id=text, actor_ref=text)
    mine, wide = fact(text, text, id=text, origin=origin, scope=f"a{text}"), fact(text, text, id=text, scope=f"b{text}")
    whole = replace(resolve_memory_digest(records=[mine, wide], scopes=[f"a{text}", f"b{text}"]), block=text)

    assert through_json(whole) == whole


@pytest.mark.parametrize(
    "text", ["\ud800", "\udfff", "\ud83d\ude00", "a\ud83d\ude00\ud83d\ude00b", "\ude00\ud83d", "😀", "\x00"], ids=ascii
)
def test_lone_surrogates_come_back_and_do_not_grow_together(text: str):
    (entry,) = through_json(digest(fact(text=text))).entries

    assert entry.text == text


@pytest.mark.parametrize(
    "moment",
    [
        NOON.replace(microsecond=123456),
        NOON.astimezone(timezone(timedelta(hours=5, minutes=45))),
        NOON.astimezone(ZoneInfo("Europe/Berlin")),
        NOON.replace(tzinfo=None),
    ],
    ids=str,
)
def test_a_time_comes_back_as_the_same_instant_with_its_zone_known(moment: datetime):
    (entry,) = through_json(digest(replace(fact(), updated_at=moment))).entries

    assert entry.updated_at.tzinfo is not None
    assert entry.updated_at == (moment if moment.tzinfo else NOON)


def test_what_is_dumped_shares_nothing_with_the_digest():
    whole = digest(fact())
    dumped = dump_digest(whole)

    dumped["scopes"].clear()
    dumped["entries"][0]["origin"].clear()

    assert whole == digest(*whole.entries)


def test_members_that_a_later_release_of_this_version_adds_are_passed_over():
    whole = digest(fact())

    assert load_digest(dump_digest(whole) | {"mood": "good"}) == whole


@pytest.mark.parametrize("version", [0, 2, 99])
def test_another_version_is_refused_with_what_to_do(version: int):
    with pytest.raises(OnfileError, match=f"version {version} and this onfile reads version 1"):
        load_digest(dump_digest(digest()) | {"version": version})


def without(member: str) -> dict:
    dumped = dump_digest(digest(fact()))
    del dumped["entries"][0][member]
    return dumped


@pytest.mark.parametrize(
    "kept",
    [
        None,
        [],
        "zanzibar",
        {},
        {"version": "zanzibar"},
        {"version": None},
        dump_digest(digest()) | {"version": True},
        dump_digest(digest()) | {"block": [["zanzibar"]]},
        dump_digest(digest()) | {"block": json.loads("[" * 900 + "]" * 900)},
        dump_digest(digest()) | {"scopes": "zanzibar"},
        dump_digest(digest()) | {"scopes": [7]},
        dump_digest(digest()) | {"entries": "zanzibar"},
        dump_digest(digest()) | {"entries": ["zanzibar"]},
        dump_digest(digest()) | {"omitted": "zanzibar"},
        dump_digest(digest()) | {"omitted": True},
        dump_digest(digest()) | {"recalled": "zanzibar"},
        dump_digest(digest()) | {"block": None},
        dump_digest(digest()) | {"writable": 1},
        *(without(member) for member in ("id", "key", "text", "scope", "origin", "updated_at")),
        {**dump_digest(digest()), "entries": [dump_digest(digest(fact()))["entries"][0] | {"updated_at": "zanzibar"}]},
        {
            **dump_digest(digest()),
            "entries": [dump_digest(digest(fact()))["entries"][0] | {"origin": {"author": "zanzibar"}}],
        },
    ],
    ids=lambda kept: None,
)
def test_what_is_no_digest_is_one_clear_error_without_a_value_of_it(kept: object):
    with pytest.raises(OnfileError) as caught:
        load_digest(kept)

    assert "zanzibar" not in str(caught.value)
    assert "kilometres" not in str(caught.value)
