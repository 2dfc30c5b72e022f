"""Authority: who may write at a scope and who may delete a record. Verdicts are values with words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .records import Actor, Author, MemoryRecord
from .scopes import actor_scope
from .text import shown_scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether an act is allowed and, where it is not, why in words for a model or a person."""

    allowed: bool
    reason: str = ""
    """Empty when the act is allowed."""

    def __bool__(self) -> bool:
        return self.allowed


ALLOWED = Verdict(allowed=True)


def memory_write_verdict(
    *, scope: str, actor: Actor, scopes: Sequence[str], author: Author, elevated: bool = False
) -> Verdict:
    """Judge whether a fact may be written at a scope.

    Args:
        scope: Where the fact would be held.
        actor: The person for whom or by whom it is written.
        scopes: What the resolver answered for this actor; nothing else can be written.
        author: `human` when a person writes, `agent` when the model does.
        elevated: The host's answer to "may this person administer that scope?". It lets a person
            write above their own scope, and nothing but a person.

    Raises:
        ScopeError: The actor's id is empty.
    """
    own = actor_scope(actor)
    place = f"[{shown_scope(scope)}]"
    yours = "" if author == "human" else f" What you record is kept at your own scope, [{shown_scope(own)}]."
    if isinstance(scopes, str) or scope not in scopes:
        if scope == own:
            return Verdict(
                allowed=False, reason=f"{place}, your own scope, is not among the scopes of this conversation."
            )
        return Verdict(allowed=False, reason=f"{place} is not among the scopes of this conversation.{yours}")
    if scope == own:
        return ALLOWED
    # Checked before `elevated` on purpose: no grant that a host can make lets anything but a
    # person write what other people are answered from.
    if author != "human":
        return Verdict(allowed=False, reason=f"Only a person may write at {place}, which reaches others.{yours}")
    if not elevated:
        reason = f"Writing at {place} needs someone who administers it; your own scope is [{shown_scope(own)}]."
        return Verdict(allowed=False, reason=reason)
    return ALLOWED


def memory_forget_verdict(*, record: MemoryRecord, actor: Actor) -> Verdict:
    """Judge whether a person may delete a record: their own yes, anything wider no.

    It takes no `elevated` on purpose: deleting your own needs nobody's permission, so the route
    that serves it has no question to ask that could be answered with no.

    Raises:
        ScopeError: The actor's id is empty.
    """
    if record.scope == actor_scope(actor):
        return ALLOWED
    place = f"[{shown_scope(record.scope)}]"
    reason = f"This is held at {place}, not at your own scope; someone who administers {place} can delete it."
    return Verdict(allowed=False, reason=reason)
