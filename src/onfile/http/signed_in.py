"""Who is calling, for every route, and what to say when they cannot be served."""

import inspect
import logging
from typing import Any, cast

from starlette.responses import Response

from ..errors import OnfileError, ScopeError
from ..records import Actor
from ..scopes import ScopeContext, check_actor
from .problems import problem

_log = logging.getLogger("onfile.http")

NOT_SIGNED_IN = "Sign in to see what is on file about you."
NOBODY = "It could not be told who is signed in, so nothing was read or changed."
NOT_NOW = "What is on file could not be reached; nothing was changed."


def context_of(calling: object, thread_id: str | None, *, asked: object) -> ScopeContext | Response:
    """Answer the scope context of the person whom the host's dependency named, or the refusal to send.

    Args:
        calling: What the dependency answered.
        thread_id: From the request, for the scope resolver.
        asked: The dependency, to be named in the log where its answer is no actor.

    Returns:
        The context; 401 for None, and 500 for anything but an actor with a name, which is the host's
        mistake and is told in the log.
    """
    if calling is None:
        return problem(401, NOT_SIGNED_IN)
    mistake = _mistake(calling)
    if mistake is not None:
        _log.error(
            "the actor dependency %s answered %s; let it return onfile.Actor(id=…) with the id of the person who is "
            "signed in, or None where nobody is",
            _name_of(asked),
            mistake,
        )
        return problem(500, NOBODY)
    actor = cast("Actor", calling)
    # Never shared: a person reading their own page is alone with it, whoever is in the thread.
    return ScopeContext(actor=actor, thread_id=thread_id or None, shared=False)


def _mistake(calling: object) -> str | None:
    """Say what is wrong with a dependency's answer, by its type and never by what is in it."""
    if inspect.iscoroutine(calling):
        calling.close()
        return "a coroutine that nobody awaited"
    if not isinstance(calling, Actor):
        return f"an object of type {type(calling).__name__}"
    try:
        check_actor(calling)
    except ScopeError as error:
        return f"an Actor, but {str(error).partition(';')[0]}"
    return None


def _name_of(dependency: object) -> str:
    # Never its repr: that of a partial or of an instance may hold a token.
    named: Any = dependency if hasattr(dependency, "__qualname__") else type(dependency)
    return f"{named.__module__}.{named.__qualname__}"


def not_now(act: str, error: OnfileError) -> Response:
    """Answer that the store failed, in words that say nothing of what it was asked."""
    # No traceback: the errors it was raised from are a driver's, whose text is not ours to vouch for.
    _log.error("could not %s: %s: %s", act, type(error).__name__, error)
    return problem(500, NOT_NOW)
