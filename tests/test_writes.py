"""What a write comes to: decided from the record that stands, by every store alike."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from onfile import Actor, MemoryOrigin, MemoryRecord, ScopeContext, StoreMemory, WriteRefused
from onfile.writes import Step, judge_write, key_identity, receipt_digest
from tests.facts import NOON, fact

ANA = ScopeContext(actor=Actor(id="ana", tenant_ref="acme"))
LATER = NOON + timedelta(hours=1)
AGENT = MemoryOrigin(author="agent", run_id="r2")
HUMAN = MemoryOrigin(author="human", actor_ref="ana")


def judge(standing: MemoryRecord | None, text="kilometres", *, key="Units", scope="actor:ana", origin=AGENT) -> Step:
    request = StoreMemory(key=key, text=text, scope=scope, origin=origin, ctx=ANA)
    return judge_write(standing=standing, request=request, now=LATER, new_id=lambda: "mem_new")


@pytest.mark.parametrize("origin", [AGENT, HUMAN], ids=["agent", "human"])
def test_a_first_write_makes_a_record_with_a_new_id(origin: MemoryOrigin):
    step = judge(None, origin=origin)

    assert step == Step(
        record=MemoryRecord(
            id="mem_new", key="Units", text="kilometres", scope="actor:ana", origin=origin, updated_at=LATER
        )
    )


def test_a_correction_keeps_id_spelling_and_pin_and_moves_text_origin_and_date():
    standing = fact(pinned=True)

    step = judge(standing, "miles")

    assert step.record == replace(standing, text="miles", origin=AGENT, updated_at=LATER)
    assert (step.replaced, step.unchanged) == ("kilometres", False)


@pytest.mark.parametrize(
    ("author", "origin"),
    [("agent", AGENT), ("human", AGENT), ("human", HUMAN)],
    ids=["own", "a person's", "by a person"],
)
def test_the_same_text_again_changes_nothing(author, origin: MemoryOrigin):
    standing = fact(author=author)

    assert judge(standing, origin=origin) == Step(record=standing, unchanged=True)


def test_a_person_who_states_what_the_model_noted_takes_it_over_and_replaces_no_text():
    standing = fact(pinned=True)

    step = judge(standing, origin=HUMAN)

    assert step == Step(record=replace(standing, origin=HUMAN, updated_at=LATER))


@pytest.mark.parametrize("author", ["agent", "human"])
def test_a_person_replaces_any_text(author):
    assert judge(fact(author=author), "miles", origin=HUMAN).replaced == "kilometres"


@pytest.mark.parametrize("author", ["agent", "system", "Human"])
def test_nothing_but_a_person_replaces_what_a_person_stated_and_the_reason_names_the_note(author):
    with pytest.raises(WriteRefused) as refusal:
        judge(fact(author="human"), "miles", origin=MemoryOrigin(author=author))

    for part in ("units", "[actor:ana]", "kilometres", "person"):
        assert part in refusal.value.reason


@pytest.mark.parametrize("scope", ["global", "tenant:acme", "actor:bob", "actor:ana ", "actor:ANA", "actor:"])
def test_an_agent_writes_nowhere_but_at_its_own_actors_scope(scope: str):
    for standing in (None, fact(scope=scope)):
        with pytest.raises(WriteRefused) as refusal:
            judge(standing, scope=scope)
        assert f"[{scope}]" in refusal.value.reason
        assert "[actor:ana]" in refusal.value.reason


def test_a_persons_wider_write_was_judged_before_it_came_to_the_store():
    assert judge(None, scope="global", origin=HUMAN).record.scope == "global"


def test_a_key_is_identified_by_its_folding_which_never_grows_past_what_a_store_can_index():
    longest = "ﬃ" * 255  # folding makes three letters of each

    assert key_identity("Fiscal Year") == "fiscal-year"
    assert len(key_identity(longest)) < 255 and key_identity(longest) != key_identity(longest[:-1])
    assert key_identity(key_identity("Fiscal Year")) == "fiscal-year"


def test_a_receipt_names_one_write_without_its_words_and_no_two_run_together():
    names = {
        receipt_digest(idempotency_key=key, scope=scope, identity=identity)
        for key, scope, identity in [("a", "b", "c"), ("ab", "", "c"), ("a", "bc", ""), ("\ud800", "b", "c")]
    }

    assert len(names) == 4
    assert all(len(name) == 64 and set(name) <= set("0123456789abcdef") for name in names)
