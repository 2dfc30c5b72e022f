"""The digest of any records at all, drawn by hypothesis: what holds whatever a provider returns."""

from __future__ import annotations

import dataclasses
from copy import deepcopy

from hypothesis import given
from hypothesis import strategies as st

from onfile import fold_key, resolve_memory_digest
from tests.facts import fact
from tests.strategies import SCOPES, records

BOTH = ("actor:ana", "global")

any_records = st.lists(records(), max_size=12)
ceilings = st.none() | st.integers(0, 6)


@given(any_records, st.randoms(use_true_random=False), ceilings)
def test_the_same_records_in_any_order_give_the_same_digest(drawn, random, ceiling):
    shuffled = list(drawn)
    random.shuffle(shuffled)

    one = resolve_memory_digest(records=drawn, scopes=SCOPES, max_memories=ceiling)
    other = resolve_memory_digest(records=shuffled, scopes=SCOPES, max_memories=ceiling)

    # The origin of two rows that are the same in id, time, key, text and author is not told apart.
    assert [dataclasses.replace(e, origin=fact().origin) for e in one.entries] == [
        dataclasses.replace(e, origin=fact().origin) for e in other.entries
    ]
    assert (one.omitted, one.pinned_omitted) == (other.omitted, other.pinned_omitted)


@given(any_records, ceilings, st.booleans())
def test_records_and_scopes_are_not_changed(drawn, ceiling, ranked):
    scopes = [*SCOPES, SCOPES[0]]
    before = deepcopy(drawn)

    resolve_memory_digest(records=drawn, scopes=scopes, max_memories=ceiling, ranked=ranked)

    assert drawn == before
    assert scopes == [*SCOPES, SCOPES[0]]


@given(any_records, ceilings, st.booleans(), st.permutations(SCOPES), st.integers(0, 4))
def test_every_digest_keeps_the_rules(drawn, ceiling, ranked, order, count):
    scopes = order[:count]

    digest = resolve_memory_digest(records=drawn, scopes=scopes, max_memories=ceiling, ranked=ranked)

    visible = [record for record in drawn if record.scope in scopes]
    questions = {fold_key(record.key) for record in visible}
    pinned = {fold_key(record.key) for record in visible if record.pinned}
    shown = [fold_key(entry.key) for entry in digest.entries]
    assert len(digest.entries) == min(len(questions), len(questions) if ceiling is None else ceiling)
    assert len(set(shown)) == len(shown)
    assert digest.omitted == len(questions) - len(shown)
    assert digest.pinned_omitted == len(pinned - set(shown))
    for entry in digest.entries:
        asked = [record for record in visible if fold_key(record.key) == fold_key(entry.key)]
        held = [entry.scope, *(beaten.scope for beaten in entry.overrides)]
        assert entry.pinned == any(record.pinned for record in asked)
        # each scope once, most specific first, none left out
        assert held == [scope for scope in scopes if any(record.scope == scope for record in asked)]
    places = [(not entry.pinned, scopes.index(entry.scope), fold_key(entry.key)) for entry in digest.entries]
    assert places == sorted(places)


@given(any_records, st.integers(1, 6))
def test_a_smaller_ceiling_shows_a_part_in_the_same_order(drawn, ceiling):
    everything = resolve_memory_digest(records=drawn, scopes=SCOPES, max_memories=None).entries
    part = resolve_memory_digest(records=drawn, scopes=SCOPES, max_memories=ceiling).entries

    assert [entry for entry in everything if entry in part] == list(part)


@given(any_records, records())
def test_a_record_that_is_not_ours_changes_nothing(drawn, stranger):
    foreign = dataclasses.replace(stranger, scope="actor:bob")

    assert resolve_memory_digest(records=[foreign, *drawn], scopes=BOTH) == resolve_memory_digest(
        records=drawn, scopes=BOTH
    )
