"""Authority: who may write at a scope and who may delete, in the order in which it is checked."""

from __future__ import annotations

import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onfile import Actor, ScopeError, memory_forget_verdict, memory_write_verdict
from tests.facts import fact
from tests.strategies import any_text

ANA = Actor(id="ana", tenant_ref="acme")
SCOPES = ("actor:ana", "depot:north", "tenant:acme", "global")
WIDER = SCOPES[1:]


def write(scope: str, *, author, elevated=False, scopes=SCOPES, actor=ANA):
    return memory_write_verdict(scope=scope, actor=actor, scopes=scopes, author=author, elevated=elevated)


# Writing


@pytest.mark.parametrize("author", ["agent", "human"])
@pytest.mark.parametrize("elevated", [False, True])
def test_an_actors_own_scope_is_theirs_always(author, elevated: bool):
    assert write("actor:ana", author=author, elevated=elevated).allowed


@pytest.mark.parametrize("author", ["agent", "human"])
@pytest.mark.parametrize("scope", ["tenant:other", "actor:bob", "tenant:ACME", "tenant:acme ", "", "tenant"])
def test_only_a_resolved_scope_can_be_written_whoever_asks(author, scope: str):
    assert not write(scope, author=author, elevated=True).allowed


@pytest.mark.parametrize("author", ["agent", "human"])
def test_an_own_scope_that_the_run_does_not_have_cannot_be_written(author):
    assert not write("actor:ana", author=author, elevated=True, scopes=("tenant:acme", "global")).allowed


def test_a_bare_string_of_scopes_holds_no_scope():
    assert not write("actor", author="human", elevated=True, scopes="actor:ana").allowed


@pytest.mark.parametrize("author", ["agent", "system", "", "Human", None])
@pytest.mark.parametrize("scope", WIDER)
def test_nothing_but_a_human_writes_above_its_own_scope_whatever_elevated_says(author, scope: str):
    assert not write(scope, author=author, elevated=True).allowed
    assert not write(scope, author=author, elevated=False).allowed


@pytest.mark.parametrize("scope", WIDER)
def test_a_human_above_their_own_scope_needs_elevated(scope: str):
    assert not write(scope, author="human").allowed
    assert write(scope, author="human", elevated=True).allowed


def test_another_actors_scope_is_wider_than_ones_own():
    scopes = (*SCOPES, "actor:bob")

    assert not write("actor:bob", author="agent", elevated=True, scopes=scopes).allowed
    assert not write("actor:bob", author="human", scopes=scopes).allowed


def test_a_scope_that_is_not_resolved_is_named_before_what_else_is_wrong():
    assert "not among the scopes" in write("tenant:other", author="agent").reason
    assert "not among the scopes" in write("tenant:other", author="human").reason


def test_the_author_is_judged_before_the_grant():
    assert "person" in write("global", author="agent").reason
    assert write("global", author="agent", elevated=True).reason == write("global", author="agent").reason


@pytest.mark.parametrize(
    ("scope", "author"),
    [("tenant:other", "human"), ("tenant:other", "agent"), ("global", "human"), ("global", "agent")],
)
def test_a_refusal_names_the_scope(scope: str, author):
    assert f"[{scope}]" in write(scope, author=author).reason


@pytest.mark.parametrize("scope", ["tenant:other", "global"])
def test_a_refusal_tells_a_model_its_own_scope(scope: str):
    assert "[actor:ana]" in write(scope, author="agent").reason


@pytest.mark.parametrize("author", ["agent", "human"])
def test_a_run_without_ones_own_scope_is_not_said_to_keep_anything_there(author):
    reason = write("actor:ana", author=author, scopes=("global",)).reason

    assert "[actor:ana], your own scope, is not among" in reason
    assert "is kept" not in reason


def test_what_is_allowed_has_no_reason():
    assert write("actor:ana", author="agent").reason == ""


def test_a_verdict_is_true_when_it_allows():
    assert write("actor:ana", author="agent")
    assert not write("global", author="agent")


@given(any_text)
def test_a_reason_is_one_line_whatever_the_scope_holds(scope: str):
    for reason in (
        write(scope, author="agent").reason,
        memory_forget_verdict(record=fact(scope=scope), actor=ANA).reason,
    ):
        assert len(reason.splitlines()) == 1
        assert reason.encode()


@given(any_text, st.lists(any_text), st.sampled_from(["agent", "human"]), st.booleans())
def test_nothing_is_ever_allowed_outside_the_scopes_or_wider_for_an_agent(scope, scopes, author, elevated):
    if write(scope, author=author, elevated=elevated, scopes=scopes).allowed:
        assert scope in scopes
        assert scope == "actor:ana" or (author == "human" and elevated)


# Deleting


def test_ones_own_can_be_deleted_whoever_wrote_it():
    assert memory_forget_verdict(record=fact(author="agent"), actor=ANA).allowed
    assert memory_forget_verdict(record=fact(author="human", pinned=True), actor=ANA).allowed


@pytest.mark.parametrize("scope", [*WIDER, "actor:bob", "actor:ana ", "actor:ANA", "actor:an", "actor:anaa", ""])
def test_anything_else_cannot_be_deleted_and_the_reason_names_its_scope(scope: str):
    verdict = memory_forget_verdict(record=fact(scope=scope), actor=ANA)

    assert not verdict.allowed
    assert f"[{scope}]" in verdict.reason


def test_deleting_asks_no_host_for_permission():
    assert list(inspect.signature(memory_forget_verdict).parameters) == ["record", "actor"]


def test_a_refusal_to_delete_repeats_neither_key_nor_fact_nor_id():
    record = fact("salary", "9000", scope="global", id="mem_1")

    reason = memory_forget_verdict(record=record, actor=ANA).reason

    assert not any(word in reason for word in ("salary", "9000", "mem_1"))


def test_nobody_may_do_nothing():
    with pytest.raises(ScopeError):
        write("global", author="human", actor=Actor(id=""))
    with pytest.raises(ScopeError):
        memory_forget_verdict(record=fact(scope="actor:"), actor=Actor(id=""))
