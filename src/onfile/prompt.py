"""The system prompt: five parts in a fixed order, and the hash that names a version of the first two."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from .scopes import ScopeContext

SEPARATOR = "\n\n"
"""One blank line between two parts."""

PromptSource = str | Callable[[ScopeContext], str | Awaitable[str | None] | None]
"""A text, or a function of the turn's context that answers one; None leaves the part out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemPrompt:
    """One turn's system prompt, from what is the same for everyone to what is a menu."""

    # The fields stand in the order in which they are read; a prompt cache lives off that order.
    base: str = ""
    contributed: tuple[str, ...] = ()
    memory: str = ""
    retrieval: str = ""
    skills: str = ""

    @property
    def stable(self) -> tuple[str, ...]:
        """The base prompt and the contributors' sections: what a run keeps as it was rendered."""
        return _present(self.base, *self.contributed)

    @property
    def changing(self) -> tuple[str, ...]:
        """The blocks of memory, retrieval and skills: what comes from checkpoints."""
        return _present(self.memory, self.retrieval, self.skills)

    @property
    def text(self) -> str:
        """The whole prompt; a part that is empty leaves no blank line behind."""
        return SEPARATOR.join(self.stable + self.changing)

    @property
    def hash(self) -> str:
        """64 hex digits that name the version of the first two parts.

        Two people whose facts, passages and skills differ have the same one, so that it identifies
        a version of the prompt and never a person.
        """
        return hashlib.sha256(SEPARATOR.join(self.stable).encode("utf-8", "surrogatepass")).hexdigest()


async def render_source(source: PromptSource, ctx: ScopeContext) -> str:
    """Answer the text of one part, without line breaks around it; `""` for a blank one or None.

    Raises:
        TypeError: A function answered something that is neither text nor None.
    """
    answer = source if isinstance(source, str) else source(ctx)
    if inspect.isawaitable(answer):
        answer = await answer
    if answer is None:
        return ""
    if not isinstance(answer, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # hosts write from untyped code
        msg = f"a part of the system prompt is a {type(answer).__name__}; answer a string, or None to leave it out"
        raise TypeError(msg)
    return answer.strip("\r\n") if answer.strip() else ""


def _present(*parts: str) -> tuple[str, ...]:
    return tuple(part for part in parts if part)
