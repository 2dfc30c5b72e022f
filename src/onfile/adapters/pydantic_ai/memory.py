"""One capability that brings the block, `remember` and the digest of the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from pydantic_ai.capabilities import durable_operation
from pydantic_ai.messages import TextContent, UserContent
from pydantic_ai.tools import RunContext

from ...digest import MemoryDigest
from ...memory import Memory
from ...remember import MemoryTool, remember_tool
from ..turn import OnError, Turns, keep, kept
from .resolved import ResolvedOnce


@dataclass
class MemoryCapability(ResolvedOnce):
    """Give an agent memory: `Agent(model, capabilities=[MemoryCapability(memory, actor=lambda ctx: ctx.deps.actor)])`.

    List it before retrieval and skills, so that the block stands in front of theirs.
    """

    memory: Memory
    _: KW_ONLY
    on_error: OnError = "fail"
    """What a provider's failure does: fail the run, or let it go on without memory and say so in an event."""
    id: str | None = "onfile_memory"  # pyright: ignore[reportIncompatibleVariableOverride]  # as the framework's own capabilities declare it
    """Part of the names of the durable steps and of the instructions; change it never."""

    def __post_init__(self) -> None:
        """Refuse what would fail in the middle of somebody's run.

        Raises:
            TypeError: The memory is no `Memory`, or `actor` cannot be called.
        """
        if not isinstance(self.memory, Memory):  # pyright: ignore[reportUnnecessaryIsInstance]  # what untyped code hands over
            given = type(self.memory).__name__
            msg = f"MemoryCapability takes a Memory, not {given}; a provider goes into one: Memory(provider)"
            raise TypeError(msg)
        if not callable(self.actor):
            msg = f"actor takes a callable, such as `lambda ctx: ctx.deps.actor`, not {type(self.actor).__name__}"
            raise TypeError(msg)

    async def digest(self, ctx: RunContext[Any]) -> MemoryDigest:
        """Answer this run's digest, resolved once."""
        return kept(await self.recorded(ctx), self._context(ctx))

    async def _resolve(self, ctx: RunContext[Any]) -> dict[str, Any]:
        self._context(ctx)  # nobody signed in is no step of a journal
        return await self._offer(ctx, _own_text(ctx.prompt))

    async def _shown(self, ctx: RunContext[Any]) -> tuple[str, bool]:
        digest = await self.digest(ctx)
        return digest.block, bool(self.memory.tools(digest))

    async def _call(self, ctx: RunContext[Any], arguments: dict[str, Any]) -> str:
        recorded = keep(await self.digest(ctx), self._context(ctx))
        return await self._write(ctx, recorded, arguments, ctx.tool_call_id or "")

    def _offered(self) -> MemoryTool:
        return remember_tool()

    @durable_operation("digest")
    async def _offer(self, ctx: RunContext[Any], query: str) -> dict[str, Any]:
        who = self._context(ctx)
        return keep(await self._turns().offer(who, query=query, run_id=ctx.run_id), who)

    @durable_operation("remember")
    async def _write(
        self, ctx: RunContext[Any], recorded: dict[str, Any], arguments: dict[str, Any], tool_call_id: str
    ) -> str:
        # The digest is an argument: an engine may run this where the run's own copy does not exist.
        who = self._context(ctx)
        return await self._turns().remember(
            arguments, digest=kept(recorded, who), ctx=who, run_id=ctx.run_id, tool_call_id=tool_call_id or None
        )

    def _turns(self) -> Turns:
        return Turns(memory=self.memory, on_error=self.on_error)


def _own_text(prompt: str | Sequence[UserContent] | None) -> str:
    """Answer the user's own text of this turn: no images, no files."""
    if prompt is None or isinstance(prompt, str):
        return prompt or ""
    texts = [part.content if isinstance(part, TextContent) else part for part in prompt]
    return "\n".join(text for text in texts if isinstance(text, str))
