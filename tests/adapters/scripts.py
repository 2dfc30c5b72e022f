"""Scripted turns: what a fake model says, step by step, and what it was told, whatever the framework."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from onfile import ListMemories, MemoryRecord
from onfile.errors import StoreError
from onfile.testing import InMemoryMemoryProvider


@dataclass(frozen=True, kw_only=True)
class Call:
    """One tool call of the model."""

    name: str
    arguments: Any
    id: str = "c1"


def remember(key: str, fact: str, *, id: str = "c1", **more: Any) -> Call:
    return Call(name="remember", arguments={"key": key, "fact": fact, **more}, id=id)


def ship(id: str = "c9") -> Call:
    """A tool of the host's that waits for a person's approval."""
    return Call(name="ship", arguments={}, id=id)


Step = Sequence[Call] | str


@dataclass
class Seen:
    """What the model of one turn was told."""

    systems: list[str] = field(default_factory=list)
    """Per model call, all that stood before the conversation."""
    offered: list[dict[str, Any]] = field(default_factory=list)
    """Per model call, the JSON schema of every tool."""
    results: dict[str, str] = field(default_factory=dict)
    """Per call id, what the model was told it came to."""


class Scripts:
    """A fake model's lines: which turn it is, is told from the user's own message.

    It keeps nothing about an agent object, so that several turns can share one.
    """

    def __init__(self) -> None:
        self.lines: dict[str, list[Step]] = {}
        self.seen: dict[str, Seen] = {}
        self.together: asyncio.Barrier | None = None

    def add(self, message: str, *steps: Step) -> Seen:
        self.lines[message] = list(steps)
        return self.seen.setdefault(message, Seen())

    async def say(self, message: str, *, said: int, system: str, tools: dict[str, Any]) -> Step:
        """Answer the next line of a turn in which the model has `said` so many already."""
        if self.together is not None and not said:
            await self.together.wait()  # nobody goes on before everybody has been asked once
        return self.say_at_once(message, said=said, system=system, tools=tools)

    def say_at_once(self, message: str, *, said: int, system: str, tools: dict[str, Any]) -> Step:
        seen = self.seen[message]
        seen.systems.append(system)
        seen.offered.append(tools)
        return self.lines[message][said]


class CountingProvider(InMemoryMemoryProvider):
    """The provider in this process, which counts how often it is asked for facts."""

    asked = 0

    async def list(self, request: ListMemories) -> Sequence[MemoryRecord]:
        self.asked += 1
        return await super().list(request)


class BrokenProvider(InMemoryMemoryProvider):
    """A provider whose database is gone."""

    broken_for: tuple[str, ...] = ("list", "write")

    async def list(self, request):
        if "list" in self.broken_for:
            msg = "the database is gone"
            raise StoreError(msg)
        return await super().list(request)

    async def write(self, request):
        if "write" in self.broken_for:
            msg = "the database is gone"
            raise StoreError(msg)
        return await super().write(request)
