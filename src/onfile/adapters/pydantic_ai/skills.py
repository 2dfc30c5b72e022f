"""One capability that brings the catalogue of skills and the tool by which a model reads one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from pydantic_ai.capabilities import CapabilityOrdering, durable_operation
from pydantic_ai.tools import RunContext

from ...runs.assistant import dump_catalog, load_catalog
from ...scopes import ScopeResolver, default_scopes
from ...skills import MAX_SKILLS, SkillCatalog, SkillProvider, SkillTool, offer_skills, read_skill, skill_tool
from ..turn import same_actor, whose
from .memory import MemoryCapability
from .resolved import ResolvedOnce


@dataclass
class SkillsCapability(ResolvedOnce):
    """Offer skills: `Agent(model, capabilities=[memory, retrieval, SkillsCapability([skills], actor=...)])`.

    List it last, so that the menu stands behind memory and retrieval.
    """

    providers: Sequence[SkillProvider]
    _: KW_ONLY
    scopes: ScopeResolver = default_scopes
    """From a run's context to its scope tokens; give it what you gave your `Memory`."""
    max_skills: int | None = MAX_SKILLS
    id: str | None = "onfile_skills"  # pyright: ignore[reportIncompatibleVariableOverride]  # as the framework's own capabilities declare it
    """Part of the names of the durable steps and of the instructions; change it never."""

    def get_ordering(self) -> CapabilityOrdering:
        """Stand behind memory, however the host lists the two."""
        return CapabilityOrdering(wrapped_by=[MemoryCapability])

    async def catalog(self, ctx: RunContext[Any]) -> SkillCatalog:
        """Answer this run's catalogue, resolved once."""
        recorded = await self.recorded(ctx)
        same_actor(recorded, self._context(ctx))
        return load_catalog(recorded["catalog"])

    async def _resolve(self, ctx: RunContext[Any]) -> dict[str, Any]:
        return await self._list(ctx)

    async def _shown(self, ctx: RunContext[Any]) -> tuple[str, bool]:
        catalog = await self.catalog(ctx)
        return catalog.block, bool(catalog.entries)

    async def _call(self, ctx: RunContext[Any], arguments: dict[str, Any]) -> str:
        return await self._read(ctx, dump_catalog(await self.catalog(ctx)), arguments)

    def _offered(self) -> SkillTool:
        return skill_tool()

    @durable_operation("catalog")
    async def _list(self, ctx: RunContext[Any]) -> dict[str, Any]:
        who = self._context(ctx)
        catalog = await offer_skills(self.providers, ctx=who, scopes=self.scopes, max_skills=self.max_skills)
        return {**whose(who), "catalog": dump_catalog(catalog)}

    @durable_operation("skill")
    async def _read(self, ctx: RunContext[Any], catalog: dict[str, Any], arguments: dict[str, Any]) -> str:
        # The catalogue is an argument: an engine may run this where the run's own copy does not exist.
        try:
            return await read_skill(
                self.providers, arguments.get("name"), catalog=load_catalog(catalog), ctx=self._context(ctx)
            )
        except LookupError as refusal:
            return str(refusal.args[0])
