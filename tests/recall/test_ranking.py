"""Keys in order, by words and by vectors, over indexes in memory."""

from __future__ import annotations

import random

import numpy
import pytest

from onfile.recall.index import Indexed, ScopeIndex, document_text
from onfile.recall.ranking import Question, rank
from onfile.recall.tokens import tokenise
from onfile.recall.vectors import packed

WITH_AND_WITHOUT_NUMPY = pytest.mark.parametrize("np", [numpy, None], ids=["numpy", "plain"])


def indexed(key, text="", *, id=None, pinned=False, minute=0, vector=None, expires=None):
    return Indexed(
        id=id or f"id-{key}",
        identity=key,
        key=key,
        text=text,
        pinned=pinned,
        updated_us=minute * 60_000_000,
        expires_us=expires,
        vector=None if vector is None else packed(vector),
    )


def index_of(*facts, np=numpy, dimensions=0):
    index = ScopeIndex(revision=1, dimensions=dimensions, numpy=np)
    index.put(facts)
    return index


def ranked(indexes, query, *, limit=20, np=numpy, vector=None, weight=0.14):
    question = Question(terms=tokenise(query), vector=vector, lexical_weight=weight, limit=limit)
    return rank(indexes, question, numpy=np)


def keys(*args, **named):
    return [key.identity for key in ranked(*args, **named)]


@WITH_AND_WITHOUT_NUMPY
def test_the_fact_that_shares_rare_words_comes_first(np):
    index = index_of(
        indexed("pallets", "we label pallets at the front"),
        indexed("front", "the front door opens at nine"),
        indexed("units", "kilometres"),
        np=np,
    )

    assert keys([index], "how do we label a pallet?", np=np) == ["pallets", "front", "units"] or keys(
        [index], "how do we label a pallet?", np=np
    ) == ["pallets", "units", "front"]


@WITH_AND_WITHOUT_NUMPY
def test_places_without_a_match_are_filled_narrowest_scope_first_then_newest_then_key(np):
    own = index_of(indexed("b", "x", minute=1), indexed("a", "x", minute=1), indexed("c", "x", minute=5), np=np)
    tenant = index_of(indexed("d", "x", minute=9), indexed("pallet", "x"), np=np)

    assert keys([own, tenant], "pallet", limit=4, np=np) == ["pallet", "c", "a", "b"]


@WITH_AND_WITHOUT_NUMPY
def test_the_ceiling_counts_unpinned_keys_and_every_pinned_key_comes_along(np):
    index = index_of(
        *(indexed(f"k{n}", f"pallet {n}") for n in range(9)),
        indexed("always", "speak Dutch", pinned=True),
        indexed("also", "a pallet is blue", pinned=True),
        np=np,
    )

    answer = ranked([index], "pallet", limit=3, np=np)

    assert sum(not key.pinned for key in answer) == 3
    assert answer[-1].identity == "always"
    assert not answer[-1].matched
    assert "also" in [key.identity for key in answer[:-1]]


@WITH_AND_WITHOUT_NUMPY
def test_a_key_ranks_by_its_best_record_in_scope(np):
    own = index_of(indexed("labels", "see the handbook"), indexed("other", "nothing", minute=3), np=np)
    tenant = index_of(indexed("labels", "label each pallet at the front", id="t1"), np=np)

    assert keys([own, tenant], "pallet label", limit=1, np=np) == ["labels"]


@WITH_AND_WITHOUT_NUMPY
def test_a_ceiling_of_nothing_leaves_the_pinned_and_none_means_all(np):
    index = index_of(indexed("a", "x"), indexed("b", "x", pinned=True), np=np)

    assert keys([index], "x", limit=0, np=np) == ["b"]
    assert set(keys([index], "x", limit=None, np=np)) == {"a", "b"}


def test_numpy_and_plain_python_rank_alike():
    chance = random.Random(3)
    words = [f"word{n}" for n in range(60)]
    facts = [indexed(f"k{n}", " ".join(chance.choices(words, k=12)), minute=chance.randrange(5)) for n in range(300)]
    for _ in range(30):
        query = " ".join(chance.choices(words, k=4))
        assert keys([index_of(*facts)], query) == keys([index_of(*facts, np=None)], query, np=None)


def test_the_order_in_which_facts_were_added_does_not_matter():
    facts = [indexed(f"k{n}", "the same words in each") for n in range(50)]

    assert keys([index_of(*facts)], "same words", limit=7) == keys([index_of(*reversed(facts))], "same words", limit=7)


def test_facts_of_another_scope_do_not_move_a_score():
    mine = index_of(indexed("a", "pallet label"), indexed("b", "pallet"))
    alone = ranked([mine], "pallet label")

    index_of(*(indexed(f"o{n}", "pallet label") for n in range(100)))

    assert ranked([mine], "pallet label") == alone


def test_vectors_find_what_shares_no_word():
    index = index_of(
        indexed("tea", "likes sencha", vector=[1, 0.1, 0]),
        indexed("car", "drives a van", vector=[0, 1, 0.2]),
        indexed("sea", "swims on Sundays", vector=[0, 0.1, 1]),
        dimensions=3,
    )

    assert keys([index], "green beverage", vector=[1, 0, 0], limit=1) == ["tea"]


def test_a_fact_without_a_vector_is_found_by_its_words():
    facts = [indexed(f"k{n}", f"topic {n}", vector=[1, 0.01 * n, 0]) for n in range(30)]
    index = index_of(*facts, indexed("gap", "the warehouse in Utrecht"), dimensions=3)

    assert "gap" in keys([index], "which warehouse?", vector=[1, 0, 0], limit=5)


def test_a_vector_of_another_size_counts_as_none():
    index = index_of(indexed("a", "x", vector=[1, 0]), indexed("b", "pallet", vector=[1, 0, 0]), dimensions=3)

    assert index.lacks_vectors
    assert keys([index], "pallet", vector=[1, 0, 0], limit=1) == ["b"]


@WITH_AND_WITHOUT_NUMPY
def test_a_changed_fact_is_found_by_its_new_text_only(np):
    index = index_of(indexed("a", "kilometres"), indexed("b", "nothing", minute=9), np=np)

    index.apply(revision=2, facts=[indexed("a", "miles")], gone=[])

    assert [key.lexical > 0 for key in ranked([index], "kilometres", np=np)] == [False, False]
    assert keys([index], "miles", limit=1, np=np) == ["a"]


@WITH_AND_WITHOUT_NUMPY
def test_a_fact_that_is_gone_is_in_no_answer_and_in_no_statistic(np):
    index = index_of(indexed("a", "pallet"), indexed("b", "pallet label"), np=np)
    fresh = index_of(indexed("b", "pallet label"), np=np)

    index.apply(revision=2, facts=[], gone=["id-a"])

    assert ranked([index], "pallet", np=np) == ranked([fresh], "pallet", np=np)


def test_a_revision_that_has_passed_changes_nothing():
    index = index_of(indexed("a", "pallet"))

    index.apply(revision=1, facts=[], gone=["id-a"])

    assert keys([index], "pallet") == ["a"]


def test_a_fact_is_let_go_when_it_expires():
    index = index_of(indexed("a", "pallet", expires=100), indexed("b", "pallet"))

    index.expire(99)
    assert set(keys([index], "pallet")) == {"a", "b"}
    index.expire(100)
    assert keys([index], "pallet") == ["b"]


def test_a_key_is_embedded_with_the_text_only_where_it_says_more():
    assert document_text(key="units", text="kilometres") == "units: kilometres"
    assert document_text(key="likes-green-tea", text="She likes green tea.") == "She likes green tea."
