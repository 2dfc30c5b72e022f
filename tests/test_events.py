"""Events: what is sent when, in counts, and what an observer cannot break."""

from __future__ import annotations

import asyncio
import logging
import re
from pathlib import Path

import pytest

from onfile import Actor, Memory, ScopeContext, events
from onfile.errors import StoreError
from onfile.events import Event, emit, event
from onfile.stores import SqlMemoryProvider, StoredMemory
from onfile.testing import InMemoryMemoryProvider
from tests.facts import fact
from tests.providers import ListOnly

ANA = ScopeContext(actor=Actor(id="ana", tenant_ref="acme"), thread_id="t1")
CALL = {"key": "units", "fact": "kilometres"}


def watched(*records, recall=False, **options) -> tuple[Memory, list[Event]]:
    seen: list[Event] = []
    return Memory(InMemoryMemoryProvider(recall=recall, records=records), on_event=seen.append, **options), seen


def sent(seen: list[Event]) -> list[tuple[str, dict]]:
    return [(happened.name.removeprefix("aviary:agent:"), dict(happened.payload)) for happened in seen]


async def test_an_offer_sends_what_it_resolved_in_counts():
    memory, seen = watched(fact("a", pinned=True), fact("b", scope="global"), fact("c"), max_memories=2)

    digest = await memory.offer(ANA, run_id="run_1")

    (happened,) = seen
    assert happened.name == "aviary:agent:memory.resolved"
    assert happened.payload == {
        "run": "run_1",
        "scopes": 3,
        "offered": 2,
        "omitted": 1,
        "pinned_omitted": 0,
        "recalled": False,
        "prompt_chars": len(digest.block),
    }


async def test_an_offer_that_searched_says_so_and_one_that_offers_nothing_costs_nothing():
    memory, seen = watched(recall=True)

    await memory.offer(ANA, query="units?")

    assert seen[0].payload["recalled"] is True
    assert (seen[0].payload["offered"], seen[0].payload["prompt_chars"], seen[0].payload["run"]) == (0, 0, None)


async def test_pinned_facts_that_reached_no_prompt_are_counted():
    memory, seen = watched(*(fact(f"policy {n}", pinned=True) for n in range(3)), max_memories=1)

    await memory.offer(ANA)

    assert (seen[0].payload["omitted"], seen[0].payload["pinned_omitted"]) == (2, 2)


async def test_a_write_sends_its_run_its_scope_and_its_length():
    memory, seen = watched()
    digest = await memory.offer(ANA)

    await memory.remember(CALL, digest=digest, ctx=ANA, run_id="run_1", tool_call_id="c1")

    assert sent(seen[1:]) == [("memory.written", {"run": "run_1", "scope": "actor:ana", "chars": 10})]


@pytest.mark.parametrize(
    "call",
    [CALL, {"key": "units"}, {"key": "-", "fact": "x"}, {"key": "policy", "fact": "x"}, {**CALL, "scope": "global"}],
)
async def test_nothing_is_sent_for_a_write_that_did_not_happen(call):
    memory, seen = watched(fact(), fact("policy", "never", author="human"))
    digest = await memory.offer(ANA)

    await memory.remember(call, digest=digest, ctx=ANA)

    assert sent(seen)[1:] == []


async def test_a_replayed_write_is_not_sent_again():
    memory, seen = watched()
    digest = await memory.offer(ANA)

    for _ in range(3):
        await memory.remember(CALL, digest=digest, ctx=ANA, run_id="run_1", tool_call_id="c1")

    assert [name for name, _ in sent(seen)].count("memory.written") == 1


async def test_what_people_do_is_sent_too():
    memory, seen = watched()

    published = await memory.publish(scope="tenant:acme", key="units", text="miles", ctx=ANA, elevated=True)
    await memory.publish(scope="tenant:acme", key="units", text="miles", ctx=ANA, elevated=True)
    await memory.pin(published.record.id, pinned=True, ctx=ANA, elevated=True)
    await memory.pin(published.record.id, pinned=True, ctx=ANA, elevated=True)
    own = await memory.publish(scope="actor:ana", key="units", text="km", ctx=ANA)
    await memory.forget(own.record.id, ANA)

    assert [name for name, _ in sent(seen)] == [
        "memory.published",
        "memory.pinned",
        "memory.published",
        "memory.forgotten",
    ]


@pytest.mark.parametrize("has_forget_all", [True, False])
async def test_who_forgets_all_of_their_own_sends_one_event_with_the_count(has_forget_all: bool, tmp_path: Path):
    provider = SqlMemoryProvider.from_url(f"sqlite+aiosqlite:///{tmp_path}/facts.db")
    await provider.setup()
    records = [fact("a"), fact("b", pinned=True), fact("c", scope="global"), fact("a", scope="actor:bob")]
    await provider.restore([StoredMemory(record=record, created_at=record.updated_at) for record in records])
    seen: list[Event] = []
    memory = Memory(provider if has_forget_all else ListOnly(*records), on_event=seen.append)

    first, again = await memory.forget_all(ANA), await memory.forget_all(ANA)

    assert (first, again) == (2, 0)
    assert sent(seen) == [("memory.forgotten", {"scope": "actor:ana", "count": 2})]
    assert {entry.key for entry in await memory.read_back(ANA)} == {"c"}
    await provider.aclose()


async def test_what_is_gone_when_a_provider_fails_half_way_is_told_all_the_same():
    class Failing(ListOnly):
        async def forget(self, request):
            if request.id == "second":
                msg = "the database is away"
                raise StoreError(msg)
            return await super().forget(request)

    seen: list[Event] = []
    memory = Memory(Failing(fact("a", id="first"), fact("b", id="second")), on_event=seen.append)

    with pytest.raises(StoreError):
        await memory.forget_all(ANA)

    assert sent(seen) == [("memory.forgotten", {"scope": "actor:ana", "count": 1})]


async def test_nothing_is_sent_for_what_people_were_refused():
    memory, seen = watched(fact(scope="global", id="g"))

    await memory.publish(scope="global", key="units", text="miles", ctx=ANA)
    await memory.pin("g", pinned=True, ctx=ANA)
    await memory.forget("g", ANA)
    await memory.forget("unknown", ANA)

    assert seen == []


async def test_reading_back_sends_nothing():
    memory, seen = watched(fact())

    await memory.read_back(ANA)

    assert seen == []


async def test_no_event_carries_a_key_or_a_fact():
    memory, seen = watched(
        fact("zanzibar", "4711"), fact("zanzibar", "4712", scope="global", author="human"), recall=True
    )
    digest = await memory.offer(ANA, query="zanzibar 4711", run_id="run_1")
    await memory.remember(
        {"key": "zanzibar two", "fact": "4713"}, digest=digest, ctx=ANA, run_id="run_1", tool_call_id="c"
    )
    published = await memory.publish(scope="actor:ana", key="zanzibar three", text="4714", ctx=ANA)
    await memory.pin(published.record.id, pinned=True, ctx=ANA)
    await memory.forget(published.record.id, ANA)

    assert len(seen) == 5
    assert not any(word in repr(seen) for word in ("zanzibar", "471"))


# Observers


def test_an_event_cannot_be_changed_by_the_callbacks_that_share_it():
    happened = event("aviary:agent:memory.resolved", scopes=1)

    with pytest.raises(TypeError):
        happened.payload["scopes"] = 2


async def test_a_callback_may_be_async():
    seen = []

    async def callback(happened: Event) -> None:
        seen.append(happened.name)

    await Memory(InMemoryMemoryProvider(), on_event=callback).offer(ANA)

    assert seen == ["aviary:agent:memory.resolved"]


async def test_without_a_callback_nothing_happens():
    await emit(event("x"), None)


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_callback_that_raises_is_logged_without_content_and_the_call_succeeds(asynchronous: bool, caplog):
    def callback(happened: Event) -> None:
        msg = f"zanzibar {dict(happened.payload)}"
        raise ValueError(msg)

    async def async_callback(happened: Event) -> None:
        callback(happened)

    memory = Memory(InMemoryMemoryProvider(), on_event=async_callback if asynchronous else callback)

    with caplog.at_level(logging.DEBUG):
        digest = await memory.offer(ANA)
        outcome = await memory.remember(CALL, digest=digest, ctx=ANA)

    assert outcome.ok
    ours = [record for record in caplog.records if record.name == "onfile"]
    assert [record.getMessage() for record in ours] == [
        "the callback for aviary:agent:memory.resolved raised ValueError",
        "the callback for aviary:agent:memory.written raised ValueError",
    ]
    assert all(record.exc_info is None for record in ours)
    assert "zanzibar" not in caplog.text


async def test_an_interrupt_in_a_callback_is_not_swallowed():
    def callback(_: Event) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await emit(event("x"), callback)


def test_the_page_about_events_names_every_event_and_all_that_it_carries(project: Path):
    page = (project / "docs" / "events.md").read_text("utf-8")
    told = dict(re.findall(r"^\| `(aviary:agent:[\w.]+)` \| .* \| (.*) \|$", page, re.MULTILINE))

    names = {value for name, value in vars(events).items() if name.isupper() and name != "PREFIX"}
    assert set(told) == names
    assert {member for payload in told.values() for member in re.findall(r"`(\w+)`", payload)} == {
        *("run", "scopes", "offered", "omitted", "pinned_omitted", "recalled", "prompt_chars", "scope", "chars"),
        *("pinned", "count", "act", "offer", "remember", "error"),
    }


def test_the_page_s_observer_is_told_what_happens(project: Path, capsys: pytest.CaptureFixture[str]):
    page = (project / "docs" / "events.md").read_text("utf-8")
    namespace = {}
    exec(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1], namespace)  # noqa: S102  # our own documentation

    asyncio.run(namespace["memory"].offer(ANA))

    assert capsys.readouterr().out.startswith("event aviary:agent:memory.resolved {'run': None, 'scopes': 3,")
