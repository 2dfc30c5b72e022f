"""An operator has PostgreSQL index the vectors of very large scopes, or hears why not."""

from __future__ import annotations

import asyncio

import pytest

from tests.stores import servers

EMBEDDER = """
from onfile.recall import CallableEmbedder

def make(dimensions=3, model="house-model-1"):
    return CallableEmbedder(lambda texts: [[1.0] * dimensions for _ in texts], model=model, dimensions=dimensions)

def make_wide():
    return make(4_001, "wide")
"""


@pytest.fixture
def db(postgres_url, own_place):
    (own_place / "house.py").write_text(EMBEDDER)
    return asyncio.run(servers.emptied(servers.by_driver(postgres_url, "postgresql+asyncpg")))


def test_each_models_vectors_are_indexed_and_let_go_again(onfile, db):
    onfile("publish", "--scope", "tenant:acme", "--key", "units", "kilograms", "--db", db)
    assert "no vectors" in onfile("db", "hnsw", "--db", db).err
    assert onfile("reindex", "--embedder", "house:make", "--db", db).out == "1 fact embedded\n"

    made = [onfile("db", "hnsw", "--db", db) for _ in range(2)]
    told = onfile("db", "hnsw", "--json", "--db", db).json

    assert [(one.code, one.out) for one in made] == [(0, "indexed: 1 vector of 3 dimensions by house-model-1\n")] * 2
    assert told == [{"model": "house-model-1", "dimensions": 3, "vectors": 1, "refused": None}]
    assert onfile("db", "hnsw", "--drop", "--db", db).out == "indexes dropped: 1\n"
    assert onfile("db", "hnsw", "--drop", "--db", db, "--json").json == {"dropped": 0}


def test_vectors_too_long_for_an_index_are_named_and_stay_exact(onfile, db):
    onfile("publish", "--scope", "tenant:acme", "--key", "units", "kilograms", "--db", db)
    onfile("reindex", "--embedder", "house:make_wide", "--db", db)

    ended = onfile("db", "hnsw", "--db", db)

    assert (ended.code, ended.out) == (
        0,
        "not indexed: 1 vector of 4001 dimensions by wide: pgvector indexes at most 4,000 dimensions\n",
    )


def test_on_another_database_there_is_nothing_to_index(onfile):
    onfile("publish", "--scope", "tenant:acme", "--key", "units", "kilograms", "--db", "new.db")

    ended = onfile("db", "hnsw", "--db", "new.db")

    assert ended.code == 2
    assert "PostgreSQL" in ended.err
