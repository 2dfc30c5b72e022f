"""Who is calling, for every route, and what to say when they cannot be served."""

from starlette.responses import Response

from ..errors import OnfileError
from ..scopes import ScopeContext
from ..wire import answers
from .problems import response


def context_of(calling: object, thread_id: str | None, *, asked: object) -> ScopeContext | Response:
    """Answer the scope context of the person whom the host's dependency named, or the refusal to send.

    Args:
        calling: What the dependency answered.
        thread_id: From the request, for the scope resolver.
        asked: The dependency, to be named in the log where its answer is no actor.
    """
    found = answers.person(calling, thread_id, asked=asked)
    return found if isinstance(found, ScopeContext) else response(found)


def not_now(act: str, error: OnfileError) -> Response:
    """Answer that the store failed, in words that say nothing of what it was asked."""
    return response(answers.not_now(act, error))
