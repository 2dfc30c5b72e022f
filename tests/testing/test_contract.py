"""Both built-in providers keep every clause of the contract that they claim."""

from contextlib import asynccontextmanager

import pytest

from onfile.errors import WriteRefused
from onfile.memory import Memory
from onfile.provider import StoreMemory
from onfile.records import Actor, MemoryOrigin
from onfile.scopes import ScopeContext
from onfile.stores import SqlMemoryProvider
from onfile.testing import CLAUSES, InMemoryMemoryProvider, check

ANA = ScopeContext(actor=Actor(id="ana"))


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


@pytest.mark.parametrize(
    ("member", "value", "reason"),
    [
        ("key", "a\x00b", "The key holds a NUL character, which no store can keep; send it without."),
        ("text", "a\ud800b", "The fact holds a lone surrogate, which no store can keep; send it without."),
        ("scope", "depot:\x00", "The scope holds a NUL character, which no store can keep; send it without."),
        ("scope", " ", "The scope is blank; a fact is held at a scope such as `tenant:acme`."),
        ("scope", "s" * 256, "The scope has 256 characters and a store keeps at most 255; make it shorter."),
        ("key", "k" * 256, "The key has 256 characters and a store keeps at most 255; make it shorter."),
        ("text", 7, "The fact must be a string, not int."),
        ("scope", None, "The scope must be a string, not NoneType."),
        ("thread_id", "\x00", "The thread id holds a NUL character, which no store can keep; send it without."),
        ("actor_ref", 7, "The actor reference must be a string, not int."),
        ("author", "robot", "The origin's author is neither `agent` nor `human`."),
    ],
)
async def test_what_no_store_can_keep_is_refused_in_the_same_words_by_every_store(member, value, reason, sqlite_file):
    origin = MemoryOrigin(**{"author": "human"} | ({member: value} if member in MemoryOrigin.__slots__ else {}))
    fact = {"key": "units", "text": "miles", "scope": "actor:ana"} | (
        {} if member in MemoryOrigin.__slots__ else {member: value}
    )

    async with sqlite_file() as in_sql:
        for provider in (InMemoryMemoryProvider(), in_sql):
            with pytest.raises(WriteRefused) as refused:
                await provider.write(StoreMemory(**fact, origin=origin, ctx=ANA))
            assert refused.value.reason == reason


async def test_what_no_store_can_keep_is_refused_before_the_store_in_the_stores_words():
    memory = Memory(InMemoryMemoryProvider())

    outcome = await memory.publish(scope="actor:ana", key="units", text="a\x00b", ctx=ANA)

    assert outcome.error.startswith("The fact holds a NUL character, which no store can keep; send it without.")
