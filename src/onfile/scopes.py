"""Scopes: which tokens apply to a turn, most specific first. The order is the whole of precedence."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AnySet
from dataclasses import dataclass
from typing import cast

from .errors import ScopeError
from .records import Actor

GLOBAL_SCOPE = "global"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeContext:
    """What a scope resolver may decide from: who asks, and in which conversation."""

    actor: Actor
    thread_id: str | None = None
    agent_name: str | None = None
    shared: bool = False
    """True when several people read the thread, so that nobody's own facts belong in it."""


ScopeResolver = Callable[[ScopeContext], Sequence[str] | Awaitable[Sequence[str]]]


def actor_scope(actor: Actor) -> str:
    """Answer the one scope that is the actor's own: `actor:<id>`.

    Raises:
        ScopeError: The actor's id is empty, which would be everyone's.
    """
    check_actor(actor)
    return f"actor:{actor.id}"


def default_scopes(ctx: ScopeContext) -> list[str]:
    """Answer the actor's own scope, their tenant's if they have one, then `global`.

    A shared thread has no actor scope.

    Raises:
        ScopeError: The actor's id or tenant reference is empty.
    """
    check_actor(ctx.actor)
    own = [] if ctx.shared else [actor_scope(ctx.actor)]
    tenant = [f"tenant:{ctx.actor.tenant_ref}"] if ctx.actor.tenant_ref is not None else []
    return [*own, *tenant, GLOBAL_SCOPE]


async def resolve_scopes(resolver: ScopeResolver, ctx: ScopeContext) -> tuple[str, ...]:
    """Ask the host's resolver and refuse every answer that does not name scopes.

    Returns:
        The tokens, most specific first; one that is listed twice counts at its first place.

    Raises:
        ScopeError: The actor is nobody, or the resolver returned nothing, None, a bare string, a set or
            dict, a blank or something that is not a string. Never read as "everything".
    """
    if not isinstance(ctx, ScopeContext):  # pyright: ignore[reportUnnecessaryIsInstance]  # what untyped code hands over
        msg = f"the context is of type {type(ctx).__name__}; it must be a ScopeContext(actor=Actor(id=…))"
        raise ScopeError(msg)
    check_actor(ctx.actor)
    answer = resolver(ctx)
    if inspect.isawaitable(answer):
        answer = await answer
    return check_scopes(answer)


def check_scopes(scopes: object) -> tuple[str, ...]:
    """Answer the scopes as a tuple, each once, or raise a `ScopeError` that says what is wrong.

    A list, a tuple, any other ordered sequence, and what a generator yields will do. Not a set, a dict
    or a dict's keys: the order is the whole of precedence, and theirs is an accident.
    """
    kind, wanted = type(scopes).__name__, "return a list or tuple of tokens, most specific first"
    if isinstance(scopes, str | bytes | bytearray | memoryview):
        msg = f"the scope resolver returned one bare string; {wanted}"
        raise ScopeError(msg)
    if isinstance(scopes, Mapping | AnySet):
        msg = f"the scope resolver returned {kind}, whose order decides nothing; {wanted}"
        raise ScopeError(msg)
    if scopes is None or not isinstance(scopes, Iterable):
        msg = f"the scope resolver returned {kind}; {wanted}"
        raise ScopeError(msg)
    tokens: dict[str, None] = {}
    for position, token in enumerate(cast("Iterable[object]", scopes)):
        if not isinstance(token, str):
            msg = (
                f"scope {position} is a {type(token).__name__}, not a string; a scope is a token such as 'tenant:acme'"
            )
            raise ScopeError(msg)
        if not token.strip():
            msg = f"scope {position} is blank; leave a scope out when it does not apply"
            raise ScopeError(msg)
        tokens[token] = None
    if not tokens:
        msg = "the scope resolver returned no scope, so nothing may be read; return at least one token"
        raise ScopeError(msg)
    return tuple(tokens)


def check_actor(actor: Actor) -> None:
    """Raise a `ScopeError` for an actor who is nobody or acts in a tenant without a name."""
    if not isinstance(actor, Actor):  # pyright: ignore[reportUnnecessaryIsInstance]  # as below
        msg = f"the actor is of type {type(actor).__name__}; it must be an onfile.Actor(id=…)"
        raise ScopeError(msg)
    if not isinstance(actor.id, str) or not actor.id:  # pyright: ignore[reportUnnecessaryIsInstance]  # hosts pass ids from untyped code
        msg = "the actor's id is empty or not a string; whose facts these are must be known"
        raise ScopeError(msg)
    tenant = actor.tenant_ref
    if tenant is not None and (not isinstance(tenant, str) or not tenant):  # pyright: ignore[reportUnnecessaryIsInstance]  # as above
        msg = "the actor's tenant_ref is empty or not a string; use None for an actor without a tenant"
        raise ScopeError(msg)
