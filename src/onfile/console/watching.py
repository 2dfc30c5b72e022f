"""Watching a turn: its journal as it goes by, told to whoever looks on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from ..memory import Memory
from ..runs.journal import Journal, Json, Run, ThreadEntry, Unit

Outcome = Literal["success", "failed", "denied", ""]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEvent:
    """One thing that happened in a turn."""

    kind: Literal["text", "call", "result"]
    text: str = ""
    """A piece of what the model says, or a call's result."""
    call_id: str = ""
    tool: str = ""
    arguments: Json = None
    outcome: Outcome = ""


Tell = Callable[[TurnEvent], None]


class WatchedJournal:
    """A run's journal that tells what passes through it."""

    def __init__(self, journal: Journal, tell: Tell, *, known: Collection[str] = ()) -> None:
        """Watch a journal.

        Args:
            journal: One that this process has claimed.
            tell: Handed each thing as it happens.
            known: The checkpoints that are only read back and that whoever looks on has seen.
        """
        self._journal = journal
        self._tell = tell
        self._known = frozenset(known)
        self._came = False
        self._calls: dict[str, tuple[str, Json]] = {}

    @property
    def run(self) -> Run:
        """The run as it was when it was claimed."""
        return self._journal.run

    @property
    def run_id(self) -> str:
        """The run it belongs to."""
        return self._journal.run_id

    @property
    def epoch(self) -> int:
        """By which claim it is held."""
        return self._journal.epoch

    def text(self, piece: str) -> None:
        """Take a piece of the model's text as it comes; hand this to the runner as `on_text`."""
        self._came = True
        self._tell(TurnEvent(kind="text", text=piece))

    def joins(self, memory: Memory) -> bool:
        """Tell whether the memory's provider can write in a transaction of this journal."""
        return self._journal.joins(memory)

    async def step(self, name: str, fn: Callable[[], Awaitable[Json]], *, facts_of: Memory | None = None) -> Json:
        """Do the work or read it back, and tell what came of it."""
        self._came = False
        return self._told(name, await self._journal.step(name, fn, facts_of=facts_of))

    async def say(self, name: str, value: Json, entry: ThreadEntry) -> Json:
        """Keep one message or read back that it is kept, and tell what that means."""
        return self._told(name, await self._journal.say(name, value, entry))

    async def tx(
        self,
        name: str,
        fn: Callable[[Unit], Awaitable[Json]],
        *,
        failed: Callable[[Exception], Json] | None = None,
    ) -> Json:
        """Do the work in one transaction or read it back, and tell what came of it."""
        return self._told(name, await self._journal.tx(name, fn, failed=failed))

    async def wait(self, name: str) -> Json:
        """Answer the signal of this name."""
        return await self._journal.wait(name)

    async def thread(self, thread_id: str) -> Sequence[ThreadEntry]:
        """Answer the messages of a thread in order, this run's own left out."""
        return await self._journal.thread(thread_id)

    def _told(self, name: str, value: Json) -> Json:
        if name.startswith("persist:toolcall:"):
            self._calls[name.removeprefix("persist:toolcall:")] = (value["tool"], value["args"])
        event = self._event(name, value) if name not in self._known else None
        if event is not None:
            self._tell(event)
        return value

    def _event(self, name: str, value: Json) -> TurnEvent | None:
        head, _, call_id = name.partition(":")
        if head == "llm" and not self._came:
            # Read back, or by a model that does not stream.
            said = "".join(part["content"] for part in value["response"]["parts"] if part["part_kind"] == "text")
            return TurnEvent(kind="text", text=said) if said else None
        if head == "tool":
            return self._of_call(
                "result", call_id, text=value["message"], outcome="success" if value["ok"] else "failed"
            )
        if name.startswith("persist:toolcall:"):
            return self._of_call("call", name.removeprefix("persist:toolcall:"))
        if name.startswith("persist:toolreject:"):
            return self._of_call("result", name.removeprefix("persist:toolreject:"), outcome="denied")
        return None

    def _of_call(
        self, kind: Literal["call", "result"], call_id: str, *, text: str = "", outcome: Outcome = ""
    ) -> TurnEvent:
        tool, arguments = self._calls.get(call_id, ("", None))
        return TurnEvent(kind=kind, text=text, call_id=call_id, tool=tool, arguments=arguments, outcome=outcome)
