"""An operator sees why a question finds what it finds, and gives vectors to facts that lack them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.facts import fact

EMBEDDER = """
from onfile.recall import CallableEmbedder

def make():
    return CallableEmbedder(lambda texts: [[float("pallet" in text), 1.0] for text in texts], model="m", dimensions=2)
"""


def test_each_key_has_its_place_its_scores_and_whether_it_is_in(onfile, on_file):
    db = on_file(fact("pallet label", "two sides"), fact("units", scope="tenant:acme"), fact("x", scope="actor:bob"))

    ended = onfile("recall", "the pallet", "--actor", "ana", "--tenant", "acme", "--limit", "1", "--db", db, "--json")
    spoken = onfile("recall", "the pallet", "--scope", "tenant:acme", "--scope", "actor:ana", "--db", db)

    assert [(key["rank"], key["in"], key["key"]) for key in ended.json] == [
        (1, True, "pallet label"),
        (2, False, "units"),
    ]
    assert ended.json[0]["lexical"] > 0
    assert ended.json[0]["cosine"] is None
    assert "pallet label" in spoken.out


def test_a_reindex_gives_vectors_once_and_the_ranking_shows_them(onfile, on_file, tmp_path: Path):
    pytest.importorskip("numpy")
    (tmp_path / "my_embedder.py").write_text(EMBEDDER)
    db = on_file(fact("pallet label"), fact("units"))

    first = onfile("reindex", "--embedder", "my_embedder:make", "--db", db, "--json")
    again = onfile("reindex", "--embedder", "my_embedder:make", "--db", db)
    ranked = onfile("recall", "pallet", "--actor", "ana", "--embedder", "my_embedder:make", "--db", db, "--json")

    assert (first.json, again.out) == ({"embedded": 2}, "0 facts embedded\n")
    assert ranked.json[0]["key"] == "pallet label"
    assert ranked.json[0]["cosine"] == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize(
    "arguments", [[], ["--actor", "ana", "--scope", "global"], ["--scope", "global", "--tenant", "a"]]
)
def test_for_whom_is_said_in_one_way(onfile, on_file, arguments):
    ended = onfile("recall", "pallet", *arguments, "--db", on_file())

    assert (ended.code, ended.err.count("\n")) == (2, 1)
