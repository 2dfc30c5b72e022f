"""Each key of a turn is told in or out, and why, by the same rules as the turn itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from onfile.digest import resolve_memory_digest
from onfile.records import MemoryRecord
from onfile.wire.why import FITS, NOT_RECALLED, PINNED, explain_digest
from tests.facts import fact

SCOPES = ("actor:ana", "tenant:acme", "global")

records = st.lists(
    st.builds(
        fact,
        key=st.sampled_from(["units", "Units", "colour", "language", "greeting"]),
        text=st.sampled_from(["one", "two"]),
        scope=st.sampled_from([*SCOPES, "tenant:other"]),
        author=st.sampled_from(["agent", "human"]),
        minutes=st.integers(0, 3),
        pinned=st.booleans(),
    ),
    max_size=12,
)


@given(records=records, max_memories=st.none() | st.integers(0, 4), ranked=st.booleans())
def test_what_is_told_as_in_is_exactly_what_the_digest_holds(
    records: list[MemoryRecord], max_memories: int | None, ranked: bool
):
    digest = resolve_memory_digest(records=records, scopes=SCOPES, max_memories=max_memories, ranked=ranked)

    lines = explain_digest(records=records, scopes=SCOPES, max_memories=max_memories, ranked=ranked)

    assert [(line.id, line.beats) for line in lines if line.included] == [(e.id, e.overrides) for e in digest.entries]
    assert sum(not line.included for line in lines) == digest.omitted
    assert all(line.reason for line in lines)


@given(records=records, ranked=st.booleans())
def test_the_first_key_told_as_left_out_is_the_next_that_a_higher_ceiling_lets_in(
    records: list[MemoryRecord], ranked: bool
):
    lines = explain_digest(records=records, scopes=SCOPES, max_memories=2, ranked=ranked)
    out = [line.id for line in lines if not line.included]

    for more, expected in enumerate(out, start=1):
        before = resolve_memory_digest(records=records, scopes=SCOPES, max_memories=1 + more, ranked=ranked)
        after = resolve_memory_digest(records=records, scopes=SCOPES, max_memories=2 + more, ranked=ranked)
        assert {e.id for e in after.entries} - {e.id for e in before.entries} == {expected}


def test_a_turn_that_shows_all_says_so():
    [line] = explain_digest(records=[fact()], scopes=SCOPES, max_memories=20, ranked=False)

    assert (line.included, line.reason) == (True, FITS)


def test_a_pin_is_the_reason_of_a_pinned_key_and_too_many_pins_are_named():
    pins = [fact(f"k{n}", pinned=True, minutes=-n) for n in range(3)]

    lines = explain_digest(records=pins, scopes=SCOPES, max_memories=2, ranked=True)

    assert [line.reason for line in lines] == [PINNED, PINNED, "pinned, but 3 keys are, ceiling 2"]


def test_a_ranked_key_names_its_rank_among_the_unpinned():
    answered = [fact("b"), fact("p", pinned=True), fact("a"), fact("c")]

    lines = explain_digest(records=answered, scopes=SCOPES, max_memories=3, ranked=True)

    assert {line.key: line.reason for line in lines} == {
        "p": PINNED,
        "a": "rank 2 for this message",
        "b": "rank 1 for this message",
        "c": "rank 3, ceiling 3 with 1 pinned",
    }


def test_a_key_that_the_search_did_not_return_is_told_as_not_recalled():
    recalled, other = fact("a"), fact("b", scope="global")

    lines = explain_digest(records=[recalled], scopes=SCOPES, max_memories=20, ranked=True, on_file=[recalled, other])

    assert [(line.key, line.included, line.reason) for line in lines] == [
        ("a", True, "rank 1 for this message"),
        ("b", False, NOT_RECALLED),
    ]


def test_what_a_key_beats_is_told_with_it():
    mine, theirs = fact(text="miles"), fact(text="kilometres", scope="tenant:acme", author="human")

    [line] = explain_digest(records=[theirs, mine], scopes=SCOPES, max_memories=20, ranked=False)

    assert (line.text, [(b.scope, b.text) for b in line.beats]) == ("miles", [("tenant:acme", "kilometres")])
