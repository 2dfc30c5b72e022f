"""History: which of a thread's earlier turns a model reads again. Dropping a message touches no fact."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from .journal import Json, ThreadEntry
from .messages import answered, plain_text

CHARS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """How much of a thread goes into a turn; whole turns are dropped, the oldest first."""

    max_messages: int | None = 100
    """Messages, calls and results at most; None means all."""
    max_tokens: int | None = None
    """Tokens at most, by `count_tokens`; None means no ceiling."""
    count_tokens: Callable[[str], int] = lambda text: -(-len(text) // CHARS_PER_TOKEN)
    """Counts the tokens of a text; unless told otherwise, four characters are one."""
    summarise: Callable[[str], Awaitable[str]] | None = None
    """Puts the dropped turns into a few words, which then lead the history; it is given no recorded facts."""

    async def choose(self, entries: Sequence[ThreadEntry]) -> dict[str, Json]:
        """Answer what `load:thread` keeps: the messages chosen, how many were dropped, and their summary."""
        turns = _turns(entries)
        first = self._first(turns)
        dropped = [entry for turn in turns[:first] for entry in turn]
        summary = ""
        if dropped and self.summarise is not None:
            summary = (await self.summarise("\n".join(filter(None, map(plain_text, dropped))))).strip()
        kept = [{"kind": entry.kind, "content": entry.content} for turn in turns[first:] for entry in turn]
        return {"messages": kept, "dropped": len(dropped), "summary": summary}

    def _first(self, turns: Sequence[Sequence[ThreadEntry]]) -> int:
        messages = tokens = 0
        for place in range(len(turns) - 1, -1, -1):
            messages += len(turns[place])
            if self.max_tokens is not None:
                tokens += sum(self.count_tokens(plain_text(entry)) for entry in turns[place])
            too_many = self.max_messages is not None and messages > self.max_messages
            if too_many or (self.max_tokens is not None and tokens > self.max_tokens):
                return place + 1
        return 0


def _turns(entries: Sequence[ThreadEntry]) -> list[list[ThreadEntry]]:
    """Group a thread by run; a turn with a call that nobody answered yet would be refused by a provider."""
    turns: dict[str, list[ThreadEntry]] = {}
    for entry in entries:
        turns.setdefault(entry.run_id, []).append(entry)
    return [turn for turn in turns.values() if answered(turn)]
