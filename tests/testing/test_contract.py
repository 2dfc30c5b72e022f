"""Both built-in providers keep every clause of the contract that they claim."""

from contextlib import asynccontextmanager

import pytest

from onfile.stores import SqlMemoryProvider
from onfile.testing import CLAUSES, InMemoryMemoryProvider, check


@pytest.fixture
def sqlite_file(tmp_path):
    """A factory of providers, each on a SQLite file of its own."""
    files = iter(range(1_000))

    @asynccontextmanager
    async def open_one():
        provider = SqlMemoryProvider.from_url(f"sqlite+aiosqlite:///{tmp_path}/{next(files)}.db")
        await provider.setup()
        try:
            yield provider
        finally:
            await provider.aclose()

    return open_one


@pytest.fixture(params=["in memory", "in memory with recall", "SQLite file"])
def factory(request, sqlite_file):
    factories = {
        "in memory": InMemoryMemoryProvider,
        "in memory with recall": lambda: InMemoryMemoryProvider(recall=True),
        "SQLite file": sqlite_file,
    }
    return factories[request.param]


@pytest.mark.parametrize("clause", CLAUSES, ids=str)
async def test_a_shipped_provider_keeps(clause, factory):
    result = await check(clause, factory)
    if result.status == "skipped":
        pytest.skip(result.reason)
    assert result.status == "passed", result.reason


def test_every_clause_is_a_sentence_of_its_own():
    names = [clause.name for clause in CLAUSES]

    assert len(set(names)) == len(names)
    assert all(name.count(" ") >= 4 for name in names)


def test_every_capability_has_its_clauses():
    assert {clause.capability for clause in CLAUSES} == {"list", "forget", "write", "report", "search", "pin"}
