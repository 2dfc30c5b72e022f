"""Skills: procedures at scopes, offered as a catalogue and read one at a time when the model asks."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from .authority import ALLOWED, Verdict
from .keys import fold_key
from .records import Actor, Author
from .scopes import GLOBAL_SCOPE, ScopeContext, ScopeResolver, actor_scope, resolve_scopes
from .text import one_line, shown_scope, shown_text

MAX_SKILLS = 50
OPEN = "<skills>"
CLOSE = "</skills>"
INTRODUCTION = (
    "Procedures on offer, one a line: [scope] name: what it is for. "
    "Before you act on one, call `skill` with its name and follow what it answers."
)
PARTIAL = "This is a selection from more."


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """The columns of one skill that a catalogue shows; the body is loaded when it is asked for."""

    name: str
    description: str
    """When to use it, one line."""
    scope: str = GLOBAL_SCOPE


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSkills:
    """Ask for the catalogue columns of every skill at these scopes."""

    scopes: Sequence[str]
    ctx: ScopeContext


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSkill:
    """Ask for the body of one skill, as the run's catalogue names it."""

    name: str
    scope: str
    ctx: ScopeContext


@runtime_checkable
class SkillProvider(Protocol):
    """Implement these two to keep skills where you already keep documents."""

    async def list(self, request: ListSkills) -> Sequence[Skill]:
        """Return the skills at the scopes, in any order, without their bodies."""
        ...

    async def load(self, request: LoadSkill) -> str | None:
        """Return the body of the skill of exactly this name at exactly this scope, or None."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry(Skill):
    """One line of a catalogue: the skill that won its name, and the scopes it beat."""

    beats: tuple[str, ...] = ()
    """Widest last. The agent follows one procedure either way, so the beaten bodies are not shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillCatalog:
    """What one run may read; kept with the run and never resolved again."""

    scopes: tuple[str, ...]
    entries: tuple[CatalogEntry, ...] = ()
    """By scope, then by name."""
    omitted: int = 0
    """Names that the ceiling left out, widest scopes first."""
    block: str = ""

    def find(self, name: str) -> CatalogEntry | None:
        """Answer the entry of that name, however it is spelled; None for a skill not offered here."""
        identity = fold_key(name)
        return next((entry for entry in self.entries if fold_key(entry.name) == identity), None)


def resolve_skill_catalog(
    *, skills: Iterable[Skill], scopes: Sequence[str], max_skills: int | None = MAX_SKILLS
) -> SkillCatalog:
    """Turn what providers listed into the catalogue a run keeps.

    Args:
        skills: In any order; one at a scope outside `scopes` is dropped, whatever a provider says.
        scopes: Most specific first, from the resolver that memory uses too.
        max_skills: How many names at most; None means all. The widest scopes are dropped first.

    Returns:
        A catalogue with its block rendered. Of two skills at one scope and name the first listed stands.
    """
    if max_skills is not None and max_skills < 0:
        msg = f"max_skills is {max_skills}; use 0 for none and None for no ceiling"
        raise ValueError(msg)
    order = tuple(dict.fromkeys(scopes))
    places = {scope: place for place, scope in enumerate(order)}
    names: dict[str, dict[int, Skill]] = {}
    for skill in skills:
        identity = fold_key(skill.name)
        if skill.scope in places and identity:
            names.setdefault(identity, {}).setdefault(places[skill.scope], skill)
    ranked = sorted((min(group), identity, group) for identity, group in names.items())
    chosen = ranked if max_skills is None else ranked[:max_skills]
    entries = tuple(_entry(group) for _, _, group in chosen)
    omitted = len(ranked) - len(chosen)
    return SkillCatalog(
        scopes=order, entries=entries, omitted=omitted, block=build_skills_block(entries=entries, partial=omitted > 0)
    )


async def offer_skills(
    providers: Sequence[SkillProvider],
    *,
    ctx: ScopeContext,
    scopes: ScopeResolver,
    max_skills: int | None = MAX_SKILLS,
) -> SkillCatalog:
    """Resolve what one run may read, once; keep the catalogue with the run.

    Raises:
        ScopeError: No usable scope; no provider was asked.
    """
    resolved = await resolve_scopes(scopes, ctx)
    request = ListSkills(scopes=resolved, ctx=ctx)
    listed = [one for provider in providers for one in await provider.list(request)]
    return resolve_skill_catalog(skills=listed, scopes=resolved, max_skills=max_skills)


async def read_skill(
    providers: Sequence[SkillProvider], name: object, *, catalog: SkillCatalog, ctx: ScopeContext
) -> str:
    """Answer a skill's body, from the first provider that has it; only what the run's catalogue offers.

    Raises:
        LookupError: It is not on offer or was withdrawn since; in words for the model.
    """
    entry = catalog.find(name) if isinstance(name, str) else None
    if entry is None:
        offered = ", ".join(one.name for one in catalog.entries)
        msg = f"There is no such skill on offer in this run. On offer: {offered or 'none'}."
        raise LookupError(msg)
    request = LoadSkill(name=entry.name, scope=entry.scope, ctx=ctx)
    for provider in providers:
        body = await provider.load(request)
        if body is not None:
            return body
    msg = f"The skill {entry.name} was withdrawn since; do without it."
    raise LookupError(msg)


def build_skills_block(*, entries: Sequence[CatalogEntry], partial: bool) -> str:
    """Render the catalogue as the last part of the system prompt; `""` when there is nothing on offer.

    Each skill is one physical line, whatever its name, description or scope contain.
    """
    if not entries:
        return ""
    lines = [OPEN, INTRODUCTION, *([PARTIAL] if partial else [])]
    for entry in entries:
        beaten = ", ".join(f"[{shown_scope(scope)}]" for scope in entry.beats)
        instead = f" (in place of the one at {beaten})" if beaten else ""
        name, purpose = (_inert(one_line(text)) for text in (entry.name, entry.description))
        lines.append(f"- [{shown_scope(entry.scope)}] {name}: {purpose}{instead}")
    return "\n".join([*lines, CLOSE])


def skill_write_verdict(
    *, scope: str, actor: Actor, scopes: Sequence[str], author: Author, elevated: bool = False
) -> Verdict:
    """Judge whether a skill may be published at a scope, by the four rules that memory has too.

    A function of its own on purpose: a skill is an instruction that others will follow, a fact is
    something others are answered from, and a change to one rule must not slip into the other.

    Args:
        scope: Where the skill would be held.
        actor: The person for whom or by whom it is published.
        scopes: What the resolver answered for this actor.
        author: `human` when a person publishes, `agent` when the model does.
        elevated: The host's answer to "may this person administer that scope?".
    """
    place = f"[{shown_scope(scope)}]"
    own = actor_scope(actor)
    if isinstance(scopes, str) or scope not in scopes:
        return Verdict(allowed=False, reason=f"{place} is not among the scopes of this conversation.")
    if scope == own:
        return ALLOWED
    # Before `elevated` on purpose: no grant lets a model write procedures that others follow.
    if author != "human":
        return Verdict(allowed=False, reason=f"Only a person may publish a skill at {place}, which reaches others.")
    if not elevated:
        return Verdict(allowed=False, reason=f"Publishing a skill at {place} needs someone who administers it.")
    return ALLOWED


Body = Callable[..., str | Awaitable[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeSkill(Skill):
    """A skill that lives in the program: its body is what the decorated function answers."""

    body: Body
    takes_ctx: bool = False

    async def read(self, ctx: ScopeContext) -> str:
        """Answer the body for a turn's context."""
        answer = self.body(ctx) if self.takes_ctx else self.body()
        return await answer if inspect.isawaitable(answer) else answer


def skill(
    *, name: str | None = None, description: str | None = None, scope: str = GLOBAL_SCOPE
) -> Callable[[Body], CodeSkill]:
    """Make a skill of a function that answers its body, with or without the turn's context.

    Args:
        name: The function's own name with dashes, unless told otherwise.
        description: The first line of the function's docstring, unless told otherwise.
        scope: Where the skill is held.
    """

    def decorate(body: Body) -> CodeSkill:
        purpose = description or (inspect.getdoc(body) or "").partition("\n")[0]
        if not purpose.strip():
            msg = "a skill needs a description, or a docstring that says when to use it"
            raise ValueError(msg)
        return CodeSkill(
            name=name or body.__name__.replace("_", "-"),
            description=purpose,
            scope=scope,
            body=body,
            takes_ctx=bool(inspect.signature(body).parameters),
        )

    return decorate


class CodeSkills:
    """The skills that a program declares, as a provider."""

    def __init__(self, *skills: CodeSkill) -> None:
        self._skills = skills

    async def list(self, request: ListSkills) -> Sequence[Skill]:
        """Return the columns of those at the scopes."""
        return [
            Skill(name=one.name, description=one.description, scope=one.scope)
            for one in self._skills
            if one.scope in request.scopes
        ]

    async def load(self, request: LoadSkill) -> str | None:
        """Return the body of one, as its function answers it now."""
        for one in self._skills:
            if (one.name, one.scope) == (request.name, request.scope):
                return await one.read(request.ctx)
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillTool:
    """The tool by which a model reads one skill; it names only what the run's catalogue offers."""

    name: str
    kind: str
    description: str
    json_schema: dict[str, Any]


def skill_tool() -> SkillTool:
    """Answer the tool as a model is offered it."""
    return SkillTool(
        name="skill",
        kind="skill",
        description="Read one of the procedures on offer, by its name.",
        json_schema={
            "type": "object",
            "properties": {"name": {"type": "string", "minLength": 1, "description": "The name, as it is listed."}},
            "required": ["name"],
            "additionalProperties": False,
        },
    )


def _entry(group: dict[int, Skill]) -> CatalogEntry:
    winner, *beaten = (group[place] for place in sorted(group))
    return CatalogEntry(
        name=winner.name,
        description=winner.description,
        scope=winner.scope,
        beats=tuple(other.scope for other in beaten),
    )


def _inert(text: str) -> str:
    # A tag of this block's own could close it early; the look-alike keeps the text readable.
    return shown_text(text).replace(OPEN, "‹skills>").replace(CLOSE, "‹/skills>")
