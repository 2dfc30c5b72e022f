"""The demo is what it says: enough of everything, the same on every machine, and never back from the dead."""

from collections import Counter
from operator import attrgetter

import pytest

from onfile.demo import ACTORS, demo_lines, demo_records, demo_scopes, load_demo
from onfile.memory import Memory
from onfile.provider import ForgetMemory
from onfile.records import Actor
from onfile.scopes import ScopeContext
from onfile.stores import SqlMemoryProvider
from onfile.testing import InMemoryMemoryProvider

ANA = ScopeContext(actor=ACTORS[0])


@pytest.fixture
async def provider(tmp_path):
    opened = SqlMemoryProvider.from_url(f"sqlite+aiosqlite:///{tmp_path / 'demo.db'}")
    await opened.setup()
    yield opened
    await opened.aclose()


def test_the_demo_has_every_kind_of_fact_that_a_newcomer_should_meet() -> None:
    records = demo_records()
    kinds = Counter(record.scope.partition(":")[0] for record in records)
    assert 40 <= len(records) <= 60
    assert min(kinds[kind] for kind in ("actor", "depot", "tenant", "global")) >= 5
    assert {record.origin.author for record in records} == {"human", "agent"}
    assert sum(record.pinned for record in records) >= 5
    # The model writes at its own actor's scope and nowhere else; the demo shows nothing that could not have happened.
    assert all(
        record.scope == f"actor:{record.origin.actor_ref}" for record in records if record.origin.author == "agent"
    )
    assert all(len(record.text) <= 240 and len(record.key) <= 64 for record in records)
    assert any("Buchungen" in record.text for record in records)


async def test_ana_meets_a_value_beaten_at_three_scopes() -> None:
    memory = Memory(InMemoryMemoryProvider(records=demo_records()), scopes=demo_scopes)
    entries = await memory.read_back(ANA)
    cutoff = next(entry for entry in entries if entry.key == "booking-cutoff")
    assert [cutoff.scope, *(beaten.scope for beaten in cutoff.overrides)] == ["actor:ana", "depot:north", "tenant:acme"]


async def test_loading_restores_every_fact_exactly_and_a_second_time_does_nothing(provider) -> None:
    assert await load_demo(provider) == list(ACTORS)
    assert await load_demo(provider) == list(ACTORS)
    stored = [memory async for memory in provider.export()]
    key = attrgetter("id")
    assert sorted((memory.record for memory in stored), key=key) == sorted(demo_records(), key=key)
    assert {memory.created_at for memory in stored} == {line.created_at for line in demo_lines()}


async def test_what_was_deleted_in_the_demo_does_not_come_back_with_the_next_start(provider) -> None:
    await load_demo(provider)
    mine = next(record.id for record in demo_records() if record.scope == "actor:ana")
    assert await provider.forget(ForgetMemory(id=mine, ctx=ANA))
    await load_demo(provider)
    assert await provider.get(mine) is None


@pytest.mark.parametrize(
    ("actor", "shared", "scopes"),
    [
        (ACTORS[0], False, ["actor:ana", "depot:north", "tenant:acme", "global"]),
        (ACTORS[0], True, ["depot:north", "tenant:acme", "global"]),
        (ACTORS[2], False, ["actor:mei", "tenant:tallis", "global"]),
        (Actor(id="nobody"), False, ["actor:nobody", "global"]),
        (Actor(id="ana", tenant_ref="tallis"), False, ["actor:ana", "tenant:tallis", "global"]),
    ],
)
def test_scopes_run_from_the_person_over_the_depot_to_everyone(actor, shared, scopes) -> None:
    assert demo_scopes(ScopeContext(actor=actor, shared=shared)) == scopes
