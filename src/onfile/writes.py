"""What a write comes to, decided from the record that stands: pure, so that every store decides alike."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .authority import memory_write_verdict
from .errors import WriteRefused
from .keys import fold_key
from .records import MemoryRecord
from .remember import person_stands
from .text import LONGEST_TOKEN, shown_scope, why_not_kept

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from .provider import StoreMemory
    from .records import MemoryOrigin


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one write does."""

    record: MemoryRecord
    """What stands afterwards."""
    unchanged: bool = False
    """True when nothing is written."""
    replaced: str | None = None
    """The text that goes, or None."""


def why_unkeepable(*, scope: str, key: str, text: str, origin: MemoryOrigin) -> str | None:
    """Say in words why no store could keep this fact, or answer None; the same words whichever store is asked.

    An idempotency key is not looked at and may hold anything: a store keeps a digest of it.
    """
    named = {
        "key": key,
        "fact": text,
        "scope": scope,
        "thread id": origin.thread_id,
        "run id": origin.run_id,
        "actor reference": origin.actor_ref,
    }
    for name, value in named.items():
        if value is None and name.endswith((" id", " reference")):
            continue
        if not isinstance(value, str):
            return f"The {name} must be a string, not {type(value).__name__}."
        if (why := why_not_kept(value)) is not None:
            return f"The {name} {why}; send it without."
    if not scope.strip():
        return "The scope is blank; a fact is held at a scope such as `tenant:acme`."
    for name, value in (("key", key), ("scope", scope)):
        if (why := why_not_kept(value, most=LONGEST_TOKEN)) is not None:
            return f"The {name} {why}; make it shorter."
    if origin.author not in ("agent", "human"):
        return "The origin's author is neither `agent` nor `human`."
    return None


def key_identity(key: str) -> str:
    """Answer what is unique within a scope: the folded key, or its digest where that is too long to index.

    Folding can lengthen a key threefold. A digest starts with `_`, which no folded key contains.
    """
    folded = fold_key(key)
    if len(folded) <= LONGEST_TOKEN:
        return folded
    from hashlib import sha256  # only where it is needed: loading it is a tenth of `import onfile`

    return "_" + sha256(folded.encode()).hexdigest()


def receipt_digest(*, idempotency_key: str, scope: str, identity: str) -> str:
    """Name one write without telling what it was about; any character may stand in the key."""
    from hashlib import sha256  # as above

    digest = sha256()
    for part in (idempotency_key, scope, identity):
        spelled = part.encode("utf-8", "surrogatepass")
        # Its length goes first, so that no two triples run together into one.
        digest.update(len(spelled).to_bytes(8, "big") + spelled)
    return digest.hexdigest()


def changes_anything(*, standing: MemoryRecord | None, request: StoreMemory) -> bool:
    """Tell whether a write may be done and would change what stands at its scope and key.

    Raises:
        WriteRefused: An agent wrote above its own actor's scope, or over a person's statement.
    """
    by_agent = request.origin.author != "human"
    if by_agent:
        # The scopes of the conversation were judged by `Memory`; here only the agent's own remains.
        verdict = memory_write_verdict(
            scope=request.scope, actor=request.ctx.actor, scopes=(request.scope,), author="agent"
        )
        if not verdict.allowed:
            raise WriteRefused(verdict.reason)
    if standing is None:
        return True
    stated = standing.origin.author == "human"
    if standing.text == request.text:
        # A person who writes what the agent concluded makes it their own statement.
        return not (stated or by_agent)
    if by_agent and stated:
        raise WriteRefused(person_stands(standing))
    return True


def forgotten_since(*, scope: str) -> str:
    """Say why a retry is refused: what the call recorded is gone, and a retry does not bring it back."""
    return f"What this very call recorded at [{shown_scope(scope)}] has been forgotten since; it stays forgotten."


def judge_write(
    *, standing: MemoryRecord | None, request: StoreMemory, now: datetime, new_id: Callable[[], str]
) -> Step:
    """Decide what a write does to the record at its scope and key.

    Args:
        standing: The record there, or None.
        request: What is to be kept.
        now: When the write happens.
        new_id: Makes the id of a record that is new.

    Raises:
        WriteRefused: As `changes_anything` says.
    """
    changes = changes_anything(standing=standing, request=request)
    if standing is None:
        record = MemoryRecord(
            id=new_id(), key=request.key, text=request.text, scope=request.scope, origin=request.origin, updated_at=now
        )
        return Step(record=record)
    if not changes:
        return Step(record=standing, unchanged=True)
    # id, key and pin stay on purpose: a correction is the same note.
    record = replace(standing, text=request.text, origin=request.origin, updated_at=now)
    return Step(record=record, replaced=None if standing.text == request.text else standing.text)
