"""The assistant: what a turn is made of, declared once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai.settings import ModelSettings

from ..memory import Memory
from ..prompt import PromptSource, SystemPrompt, render_source
from ..remember import remember_tool
from ..scopes import ScopeContext, ScopeResolver, default_scopes
from ..skills import MAX_SKILLS, CatalogEntry, SkillCatalog, SkillProvider, offer_skills, skill_tool
from .history import History
from .messages import AnyModel
from .retrieval import Retrieval
from .tools import ASK_DESCRIPTION, ASK_SCHEMA, OFFERED_BY_THE_LOOP, Tool

MAX_STEPS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Assistant:
    """Declare what answers a turn; every part but the model may be left out.

    A part that is left out takes no position in a run's journal.
    """

    model: AnyModel
    """A model of Pydantic AI, or a string such as `openai:gpt-5`."""
    base_prompt: PromptSource = ""
    contributors: Sequence[PromptSource] = ()
    memory: Memory | None = None
    retrieval: Retrieval | None = None
    skills: Sequence[SkillProvider] = ()
    scopes: ScopeResolver | None = None
    """For skills; unless told otherwise memory's own, so that the question is answered once."""
    max_skills: int | None = MAX_SKILLS
    tools: Sequence[Tool] = ()
    asks: bool = False
    """Offer `ask`, by which the model puts questions to the user."""
    max_steps: int = MAX_STEPS
    history: History = field(default_factory=History)
    model_settings: ModelSettings | None = None

    def __post_init__(self) -> None:
        for tool in self.tools:
            if not isinstance(tool, Tool):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers without types
                named = getattr(tool, "__name__", type(tool).__name__)
                msg = (
                    f"{named} among the tools is a {type(tool).__name__}, not a tool; say what kind it is: @read_tool "
                    "for a function that only looks something up, @action_tool for one that changes something and "
                    "waits for a person's approval"
                )
                raise TypeError(msg)
        names = [tool.name for tool in self.tools]
        for name in names:
            if name in OFFERED_BY_THE_LOOP:
                msg = f"a tool is called {name!r}, which the loop offers itself; give it another name"
                raise ValueError(msg)
        if len(set(names)) < len(names):
            msg = "two tools have the same name; give each its own"
            raise ValueError(msg)
        if self.max_steps < 1:
            msg = "max_steps must be at least 1"
            raise ValueError(msg)

    @property
    def stages(self) -> list[str]:
        """The stages that are on, as `run:prompt-stages` keeps them."""
        on = {"memory": self.memory is not None, "retrieval": self.retrieval is not None, "skills": bool(self.skills)}
        return [stage for stage, is_on in on.items() if is_on]

    def tool(self, name: str) -> Tool | None:
        """Answer the registered tool of that name."""
        return next((tool for tool in self.tools if tool.name == name), None)

    async def prompt(self, ctx: ScopeContext) -> SystemPrompt:
        """Render the first two parts of the system prompt."""
        base = await render_source(self.base_prompt, ctx)
        return SystemPrompt(base=base, contributed=tuple([await render_source(one, ctx) for one in self.contributors]))

    def definitions(self) -> list[dict[str, Any]]:
        """Answer every tool that a turn may offer, as `persist:run:start` keeps them."""
        offered = [_definition(tool.name, tool.kind, tool.description, dict(tool.json_schema)) for tool in self.tools]
        if self.asks:
            offered.append(_definition("ask", "ask", ASK_DESCRIPTION, dict(ASK_SCHEMA)))
        if self.skills:
            skill = skill_tool()
            offered.append(_definition(skill.name, skill.kind, skill.description, skill.json_schema))
        if self.memory is not None:
            remember = remember_tool()
            offered.append(_definition(remember.name, remember.kind, remember.description, remember.json_schema))
        return offered

    async def catalog(self, ctx: ScopeContext) -> SkillCatalog:
        """Resolve the skills that this turn may read."""
        resolver = self.scopes or (self.memory.scopes if self.memory is not None else default_scopes)
        return await offer_skills(self.skills, ctx=ctx, scopes=resolver, max_skills=self.max_skills)


def dump_catalog(catalog: SkillCatalog) -> dict[str, Any]:
    """Answer a catalogue as `skills:catalog` keeps it."""
    return {
        "scopes": list(catalog.scopes),
        "entries": [
            {"name": one.name, "description": one.description, "scope": one.scope, "beats": list(one.beats)}
            for one in catalog.entries
        ],
        "omitted": catalog.omitted,
        "block": catalog.block,
    }


def load_catalog(kept: dict[str, Any]) -> SkillCatalog:
    """Read a catalogue back."""
    entries = tuple(
        CatalogEntry(name=one["name"], description=one["description"], scope=one["scope"], beats=tuple(one["beats"]))
        for one in kept["entries"]
    )
    return SkillCatalog(scopes=tuple(kept["scopes"]), entries=entries, omitted=kept["omitted"], block=kept["block"])


def _definition(name: str, kind: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "kind": kind, "description": description, "schema": schema}
