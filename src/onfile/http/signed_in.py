"""Who is calling, for every route, and what to say when they cannot be served."""

import logging

from starlette.responses import Response

from ..errors import OnfileError
from ..records import Actor
from ..scopes import ScopeContext
from .problems import problem

_log = logging.getLogger("onfile.http")

NOT_SIGNED_IN = "Sign in to see what is on file about you."
NOT_NOW = "What is on file could not be reached; nothing was changed."


def context_of(calling: object, thread_id: str | None) -> ScopeContext:
    """Answer the scope context of the person whom the host's dependency named.

    Raises:
        TypeError: It named something else than an actor.
    """
    if not isinstance(calling, Actor):
        msg = f"the actor dependency returned {type(calling).__name__}; it must return an onfile.Actor, or None"
        raise TypeError(msg)
    # Never shared: a person reading their own page is alone with it, whoever is in the thread.
    return ScopeContext(actor=calling, thread_id=thread_id or None, shared=False)


def not_now(act: str, error: OnfileError) -> Response:
    """Answer that the store failed, in words that say nothing of what it was asked."""
    # No traceback: the errors it was raised from are a driver's, whose text is not ours to vouch for.
    _log.error("could not %s: %s: %s", act, type(error).__name__, error)
    return problem(500, NOT_NOW)
