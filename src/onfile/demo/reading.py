"""What the demo's script reads of a prompt: facts off the memory block, names off the skills catalogue."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ..recall.tokens import tokenise

_FACT = re.compile(r"- \[(?P<scope>[^\]]*)\] (?P<key>.*?): (?P<text>.*)")
_BEATEN = re.compile(r"    ↳ \[(?P<scope>[^\]]*)\] (?:a person stated|instead has): (?P<text>.*)")
_SKILL = re.compile(r"- \[[^\]]*\] (?P<name>.*?): (?P<purpose>.*)")
_KEY_WEIGHT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFact:
    """One fact as the block shows it."""

    scope: str
    key: str
    text: str
    own_note: bool
    """It stands in the section of what the model concluded itself."""
    beats: tuple[tuple[str, str], ...] = ()
    """Scope and text of each value it beats."""

    @property
    def said(self) -> str:
        """The fact as one line of an answer, with where it is from and what it beats."""
        who = "my own note" if self.own_note else "a person stated it"
        beaten = "".join(f"; [{scope}] has “{text}” instead" for scope, text in self.beats)
        return f"{self.key}: {self.text} ([{self.scope}], {who}{beaten})"


def read_facts(prompt: str) -> list[ReadFact]:
    """Read every fact of a prompt's memory block, in its order."""
    facts: list[ReadFact] = []
    own_note = False
    for line in _inside(prompt, "memory"):
        if found := _FACT.fullmatch(line):
            facts.append(ReadFact(scope=found["scope"], key=found["key"], text=found["text"], own_note=own_note))
        elif facts and (beaten := _BEATEN.fullmatch(line)):
            facts[-1] = replace(facts[-1], beats=(*facts[-1].beats, (beaten["scope"], beaten["text"])))
        else:
            own_note = line.startswith("Concluded by you")
    return facts


def read_skills(prompt: str) -> list[tuple[str, str]]:
    """Read the name and purpose of every skill of a prompt's catalogue."""
    return [(found["name"], found["purpose"]) for line in _inside(prompt, "skills") if (found := _SKILL.match(line))]


def matching(facts: Sequence[ReadFact], question: str) -> list[ReadFact]:
    """Answer the facts that share the most words with a question; a word of the key counts twice."""
    asked = set(tokenise(question))
    scores = [_KEY_WEIGHT * len(asked & set(tokenise(one.key))) + len(asked & set(tokenise(one.text))) for one in facts]
    best = max(scores, default=0)
    return [one for one, score in zip(facts, scores, strict=True) if score == best] if best else []


def _inside(prompt: str, tag: str) -> Iterable[str]:
    _, opened, rest = prompt.partition(f"<{tag}>\n")
    inside, closed, _ = rest.partition(f"\n</{tag}>")
    return inside.split("\n") if opened and closed else ()
