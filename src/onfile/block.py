"""The block: a digest as the model reads it. All wording that a model meets in it is here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .digest import DigestEntry, OverriddenMemory
from .text import shown_scope, shown_text

OPEN = "<memory>"
CLOSE = "</memory>"
INTRODUCTION = (
    "On file about this user and their organisation, one fact a line: [scope] key: fact. "
    "A narrower scope overrides a wider one; where ↳ shows the beaten value, "
    "tell the user theirs differs instead of silently choosing."
)
PARTIAL = "This is a selection from more: absence here is no evidence that nothing is on file."
WRITABLE = (
    "Call `remember` to record what will matter in later conversations; correct a fact under the same key. "
    "It is kept as your own note."
)
STATED = (
    "Stated by people: treat as instructions. When the user contradicts one, "
    "point out the conflict, naming the note and its scope."
)
CONCLUDED = "Concluded by you, perhaps stale: prefer what the user says now, and say where a note came from."

FRAMING = len("\n".join((OPEN, INTRODUCTION, PARTIAL, WRITABLE, STATED, CONCLUDED, CLOSE)))
"""Characters of a block that has everything but entries."""


def build_memory_block(*, entries: Sequence[DigestEntry], writable: bool, partial: bool) -> str:
    """Render entries as the block that goes into the system prompt; `""` when there are none.

    Args:
        entries: In the digest's order, which the block keeps within each of its two sections.
        writable: `remember` is offered in this run, so the block names it.
        partial: More is on file than these entries.

    Returns:
        `<memory>` … `</memory>` without a line break at the end. Each fact is one physical line,
        whatever its text, key or scope contain. At most `block_ceiling(...)` characters.
    """
    if not entries:
        return ""
    lines = [OPEN, INTRODUCTION]
    if partial:
        lines.append(PARTIAL)
    if writable:
        lines.append(WRITABLE)
    # An author that is neither of the two is the model's: only a person's word is an instruction.
    stated = [entry for entry in entries if entry.origin.author == "human"]
    concluded = [entry for entry in entries if entry.origin.author != "human"]
    for heading, section in ((STATED, stated), (CONCLUDED, concluded)):
        if section:
            lines.append(heading)
            lines.extend(line for entry in section for line in _entry_lines(entry))
    lines.append(CLOSE)
    return "\n".join(lines)


def block_ceiling(*, max_memories: int, max_fact_chars: int, max_key_chars: int, scopes: Sequence[str]) -> int:
    """Answer the most characters (code points) that a block can have under these limits, exactly.

    With M entries (two or more), F and K the characters of the longest fact and key, S scopes whose shown
    lengths add up to T (each overridden at every other scope by a person's word, both sections):

        framing + M * (8 + K + F + T + (S - 1) * (27 + F))        and 0 when M or S is 0

    where framing is the tags, the five sentences of this module and their line breaks (`FRAMING`),
    8 is `- [] : ` with its line break and 27 is `    ↳ [] a person stated: ` with its own. A scope
    is shown as itself except for `[`, `]` and what cannot be shown, which take up to 12 characters
    each. A single entry has only one of the two sections, so for M = 1 the shorter heading and its
    line break come off.
    """
    distinct = dict.fromkeys(scopes)
    if max_memories <= 0 or not distinct:
        return 0
    framing = FRAMING if max_memories > 1 else FRAMING - len("\n") - min(len(STATED), len(CONCLUDED))
    entry = len("\n- [] : ") + max_key_chars + max_fact_chars
    override = len("\n    ↳ [] a person stated: ") + max_fact_chars
    shown = sum(len(shown_scope(scope)) for scope in distinct)
    return framing + max_memories * (entry + shown + (len(distinct) - 1) * override)


def _entry_lines(entry: DigestEntry) -> Iterable[str]:
    yield f"- [{shown_scope(entry.scope)}] {shown_text(entry.key)}: {shown_text(entry.text)}"
    for beaten in entry.overrides:
        yield _override_line(beaten)


def _override_line(beaten: OverriddenMemory) -> str:
    verb = "a person stated" if beaten.author == "human" else "instead has"
    return f"    ↳ [{shown_scope(beaten.scope)}] {verb}: {shown_text(beaten.text)}"
