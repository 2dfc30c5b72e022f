"""Scopes: what a resolver may answer, and what is never read as everything."""

from __future__ import annotations

from collections import UserList, deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onfile import Actor, OnfileError, ScopeContext, ScopeError, actor_scope, default_scopes
from onfile.scopes import resolve_scopes
from tests.strategies import any_text

ANA = Actor(id="ana", tenant_ref="acme")
CTX = ScopeContext(actor=ANA)
SECRET = "tenant:zanzibar-4711"


async def resolved(answer: object, ctx: ScopeContext = CTX) -> tuple[str, ...]:
    return await resolve_scopes(lambda _: answer, ctx)


def test_the_default_is_the_actor_then_their_tenant_then_everyone():
    assert default_scopes(CTX) == ["actor:ana", "tenant:acme", "global"]


def test_an_actor_without_a_tenant_has_no_tenant_scope():
    assert default_scopes(ScopeContext(actor=Actor(id="ana"))) == ["actor:ana", "global"]


def test_a_shared_thread_has_no_actor_scope():
    assert default_scopes(ScopeContext(actor=ANA, shared=True)) == ["tenant:acme", "global"]


@given(any_text.filter(bool))
def test_any_text_that_is_not_empty_is_a_legal_id_and_stays_as_it_is(id: str):
    assert actor_scope(Actor(id=id)) == f"actor:{id}"
    assert default_scopes(ScopeContext(actor=Actor(id=id, tenant_ref=id))) == [f"actor:{id}", f"tenant:{id}", "global"]


async def test_the_resolver_decides_the_order():
    assert await resolved(["global", "actor:ana"]) == ("global", "actor:ana")


async def test_a_resolver_may_be_async():
    async def resolver(ctx: ScopeContext) -> list[str]:
        return [f"depot:{ctx.thread_id}"]

    assert await resolve_scopes(resolver, ScopeContext(actor=ANA, thread_id="t1")) == ("depot:t1",)


async def test_a_resolver_is_given_the_whole_context():
    seen = []
    ctx = ScopeContext(actor=ANA, thread_id="t1", agent_name="clerk", shared=True)

    await resolve_scopes(lambda given: seen.append(given) or ["global"], ctx)

    assert seen == [ctx]


async def test_a_scope_that_is_listed_twice_counts_at_its_first_place():
    assert await resolved(["actor:ana", "global", "actor:ana", "global"]) == ("actor:ana", "global")


@given(st.lists(any_text.filter(str.strip), min_size=1))
async def test_scopes_pass_byte_for_byte(scopes: list[str]):
    assert await resolved(scopes) == tuple(dict.fromkeys(scopes))


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        (),
        pytest.param(iter(()), id="an exhausted iterator"),
        "actor:ana",
        b"actor:ana",
        "",
        7,
        [""],
        ["  "],
        ["\u3000\t"],
        ["actor:ana", ""],
        ["actor:ana", None],
        ["actor:ana", 7],
        [b"actor:ana"],
        [["actor:ana"]],
        bytearray(b"actor:ana"),
        {"actor:ana"},
        frozenset({"actor:ana"}),
        {"actor:ana": True},
        {"actor:ana": True}.keys(),
    ],
    ids=repr,
)
async def test_an_answer_that_names_no_scope_is_an_error(answer: object):
    with pytest.raises(ScopeError):
        await resolved(answer)


@pytest.mark.parametrize(
    "answer",
    [{"actor:ana", "global"}, {"actor:ana": 1}, "actor:ana", None, 7, object()],
    ids=lambda a: type(a).__name__,
)
async def test_a_resolver_that_answers_no_list_is_told_what_to_return(answer: object):
    with pytest.raises(ScopeError, match="return a list or tuple of tokens, most specific first"):
        await resolved(answer)


async def test_an_async_generator_is_no_list_of_scopes():
    async def resolver(_: ScopeContext):
        yield "global"

    with pytest.raises(ScopeError, match="returned async_generator; return a list or tuple"):
        await resolve_scopes(resolver, CTX)


@pytest.mark.parametrize(
    "answer",
    [
        ["actor:ana", "global"],
        ("actor:ana", "global"),
        pytest.param(deque(["actor:ana", "global"]), id="a deque"),
        pytest.param(UserList(["actor:ana", "global"]), id="a sequence of somebody's own"),
        pytest.param((scope for scope in ("actor:ana", "global")), id="a generator"),
        pytest.param({"a": "actor:ana", "b": "global"}.values(), id="a dict's values"),
    ],
)
async def test_whatever_has_an_order_will_do(answer: object):
    assert await resolved(answer) == ("actor:ana", "global")


@pytest.mark.parametrize(
    "actor", [Actor(id=""), Actor(id="ana", tenant_ref=""), Actor(id=None), Actor(id="ana", tenant_ref=7)], ids=repr
)
async def test_an_actor_who_is_nobody_is_an_error_whatever_the_resolver_says(actor: Actor):
    ctx = ScopeContext(actor=actor)

    with pytest.raises(ScopeError):
        await resolved(["global"], ctx)
    with pytest.raises(ScopeError):
        default_scopes(ctx)


@pytest.mark.parametrize("id", ["", None, 7])
def test_nobody_has_no_scope_of_their_own(id):
    with pytest.raises(ScopeError):
        actor_scope(Actor(id=id))


def test_a_scope_error_is_one_of_ours_and_a_value_error():
    assert issubclass(ScopeError, OnfileError)
    assert issubclass(ScopeError, ValueError)


@pytest.mark.parametrize("answer", [SECRET, SECRET.encode(), [SECRET, ""], [SECRET, 7], [[SECRET]]], ids=repr)
async def test_a_scope_error_names_no_scope(answer: object):
    with pytest.raises(ScopeError) as caught:
        await resolved(answer)

    assert "zanzibar" not in str(caught.value)


async def test_what_a_resolver_raises_passes_through():
    def resolver(_: ScopeContext) -> list[str]:
        msg = "no such depot"
        raise LookupError(msg)

    with pytest.raises(LookupError, match="no such depot"):
        await resolve_scopes(resolver, CTX)


@pytest.mark.parametrize(
    ("ctx", "wanted"),
    [
        (ANA, r"type Actor; .*ScopeContext\(actor="),
        ("ana", r"type str; .*ScopeContext\(actor="),
        (ScopeContext(actor="ana"), r"actor is of type str; .*Actor\(id="),
        (ScopeContext(actor={"id": "ana"}), r"actor is of type dict; .*Actor\(id="),
    ],
    ids=["an actor", "a string", "a string for the actor", "a dict for the actor"],
)
async def test_what_stands_where_a_context_or_an_actor_belongs_is_told_by_its_type(ctx: object, wanted: str):
    with pytest.raises(ScopeError, match=wanted) as caught:
        await resolve_scopes(default_scopes, ctx)

    assert "ana" not in str(caught.value)
