"""The account of a run: what was in its prompt and why, from its journal and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..prompt import SystemPrompt
from .journal import Checkpoint, Json


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAccount:
    """What a model read in one run, whatever is on file now."""

    prompt: SystemPrompt
    """Byte for byte as it was sent, but for what was erased since."""
    reasons: tuple[str, ...]
    """One sentence each: why the changing parts were what they were."""
    tools: tuple[str, ...]
    """What the model could call, with kinds."""


def account_of(checkpoints: Sequence[Checkpoint]) -> RunAccount:
    """Read a run's account from as much of its journal as there is."""
    kept: dict[str, Json] = {checkpoint.name: checkpoint.value for checkpoint in checkpoints}
    start: dict[str, Json] = kept.get("persist:run:start") or {"base": "", "contributed": [], "tools": []}
    digest, found, catalog = (kept.get(name) for name in ("memory:digest", "retrieve", "skills:catalog"))
    prompt = SystemPrompt(
        base=start["base"],
        contributed=tuple(start["contributed"]),
        memory=digest["block"] if digest else "",
        retrieval=found["block"] if found else "",
        skills=catalog["block"] if catalog else "",
    )
    reasons = [f"The prompt's version is {start['prompt_hash'][:12]}."] if "prompt_hash" in start else []
    reasons += [*_history(kept.get("load:thread")), *_memory(digest)]
    reasons += _calls(checkpoints)
    if found:
        reasons.append(
            f"Retrieval was asked once, with the user's own words, and gave {len(found['passages'])} passages."
        )
    if catalog:
        reasons.append(f"{len(catalog['entries'])} skills were on offer and {catalog['omitted']} were left out.")
    offered = {"memory": bool(digest and digest["writable"]), "skill": bool(catalog and catalog["entries"])}
    tools = [f"{one['name']} ({one['kind']})" for one in start["tools"] if offered.get(one["kind"], True)]
    return RunAccount(prompt=prompt, reasons=tuple(reasons), tools=tuple(tools))


def _history(kept: Json) -> list[str]:
    if not kept:
        return []
    summary = ", which a summary stood for" if kept["summary"] else ""
    return [f"{len(kept['messages'])} earlier messages were read again and {kept['dropped']} were dropped{summary}."]


def _calls(checkpoints: Sequence[Checkpoint]) -> list[str]:
    values: list[Json] = [
        one.value for one in checkpoints if one.name.startswith(("llm:", "persist:toolcall:", "tool:"))
    ]
    places = sum(value.get("erased", 0) for value in values)
    if not places:
        return []
    return [f"Calls of remember are erased from this journal in {places} places; their facts were forgotten since."]


def _memory(digest: Json) -> list[str]:
    if not digest:
        return []
    beaten = sum(len(entry.get("overrides", ())) for entry in digest["entries"])
    how = "searched by the user's own words" if digest["recalled"] else "listed"
    reasons = [
        f"Memory was {how} at {len(digest['scopes'])} scopes: {' > '.join(digest['scopes'])}.",
        f"{len(digest['entries'])} facts were shown with {beaten} beaten values; "
        f"{digest['omitted']} keys were left out, {digest['pinned_omitted']} of them pinned.",
    ]
    if not digest["writable"]:
        reasons.append("remember was not offered: nothing could be written at the actor's own scope.")
    if digest.get("erased"):
        reasons.append(f"{digest['erased']} values were forgotten since and erased from this journal.")
    return reasons
