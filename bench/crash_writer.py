"""What is killed by `bench.crash`: a process that writes, corrects and forgets facts, and tells each act in a file.

Two lines an act, each a single write to a file opened for appending, so that a line is there whole or not at all
and outlives the process: what is about to be done, and that the store has acknowledged it. A process that finds an
act without its second line does it again, with the same idempotency key, before anything else.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import time
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from sqlalchemy.exc import SQLAlchemyError

from onfile.errors import OnfileError
from onfile.provider import ForgetMemory, StoreMemory
from onfile.records import Actor, MemoryOrigin
from onfile.scopes import ScopeContext
from onfile.stores import SqlMemoryProvider

SHARED = "everyone"
"""The actor at whose scope all writers write the same few keys."""
SHARED_KEYS = [f"shared key {number}" for number in range(5)]
_SHARES = {"new": 45, "replace": 20, "shared": 20, "forget": 15}
_PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One thing that a writer asks of the store."""

    name: str
    """Writer, life and number; the idempotency key, the run of the origin and the seed of the text."""
    kind: Literal["new", "replace", "shared", "forget"]
    actor: str
    key: str
    id: str | None = None
    """What is forgotten."""

    @property
    def scope(self) -> str:
        return f"actor:{self.actor}"

    @property
    def ctx(self) -> ScopeContext:
        return ScopeContext(actor=Actor(id=self.actor))

    @property
    def origin(self) -> MemoryOrigin:
        return MemoryOrigin(author="agent", thread_id=f"thread {self.name}", run_id=self.name, actor_ref=self.actor)

    def request(self) -> StoreMemory:
        return StoreMemory(
            key=self.key,
            text=text_of(self.name),
            scope=self.scope,
            origin=self.origin,
            ctx=self.ctx,
            idempotency_key=self.name,
        )


def text_of(name: str) -> str:
    """A long text that can be of one act only, at its beginning, in its middle and at its end."""
    return f"begins {name} " + f"and goes on in {name} " * (1 + zlib.crc32(name.encode()) % 60) + f"ends {name}"


class Directions:
    """An embedder that needs no model: eight numbers made of the text."""

    model = "crash"
    dimensions = 8

    async def embed_query(self, text: str) -> Sequence[float]:
        return self.of(text)

    async def embed_documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return [self.of(text) for text in texts]

    def of(self, text: str) -> list[float]:
        dice = random.Random(zlib.crc32(text.encode()))
        return [dice.uniform(-1, 1) for _ in range(self.dimensions)]


@dataclass(slots=True)
class Told:
    """An act as the file tells it."""

    act: Act
    begun: int
    """Nanoseconds of the clock that all processes share."""
    done: int | None = None
    id: str | None = None
    """The record that stood afterwards, if one did."""


class Diary:
    """One writer's file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> dict[str, Told]:
        """All acts by name, in their order."""
        told: dict[str, Told] = {}
        for line in self._path.read_text("utf-8").splitlines() if self._path.exists() else ():
            said = json.loads(line)
            if "act" in said:
                told[said["act"]["name"]] = Told(Act(**said["act"]), said["at"])
            else:
                told[said["done"]].done, told[said["done"]].id = said["at"], said["id"]
        return told

    def open(self) -> None:
        self._file = os.open(self._path, os.O_APPEND | os.O_CREAT | os.O_WRONLY)

    def begin(self, act: Act) -> None:
        self._tell({"act": asdict(act), "at": time.monotonic_ns()})

    def done(self, act: Act, id_: str | None) -> None:
        self._tell({"done": act.name, "id": id_, "at": time.monotonic_ns()})

    def _tell(self, said: dict[str, Any]) -> None:
        os.write(self._file, json.dumps(said).encode() + b"\n")


class Writer:
    """One life of a writer."""

    def __init__(self, url: str, diary: Path, name: str, *, seed: int, patient: bool) -> None:
        self._provider = SqlMemoryProvider.from_url(url, Directions())
        self._diary, self._name, self._patient = Diary(diary), name, patient
        told = self._diary.read()
        self._life = 1 + max((int(one.split(".")[1]) for one in told), default=0)
        self._dice = random.Random(f"{seed} {name} {self._life}")
        self._standing: dict[str, str] = {}
        self._open = [one.act for one in told.values() if one.done is None]
        for one in told.values():
            self._note(one.act, one.id)

    async def live(self, acts: int | None) -> None:
        """Do what was left undone, then as many acts as are wanted; None for no end."""
        self._diary.open()
        await self._insist(self._provider.setup)
        for act in self._open:
            await self._do(act)
        number = 0
        while acts is None or number < acts:
            number += 1
            act = self._next(f"{self._name}.{self._life}.{number}")
            self._diary.begin(act)
            await self._do(act)
        await self._provider.aclose()

    def _next(self, name: str) -> Act:
        kind: Any = self._dice.choices(list(_SHARES), list(_SHARES.values()))[0]
        if kind == "shared":
            return Act(name=name, kind="shared", actor=SHARED, key=self._dice.choice(SHARED_KEYS))
        if kind == "new" or not self._standing:
            return Act(name=name, kind="new", actor=self._name, key=f"key {name}")
        key = self._dice.choice(list(self._standing))
        id_ = self._standing[key] if kind == "forget" else None
        return Act(name=name, kind=kind, actor=self._name, key=key, id=id_)

    async def _do(self, act: Act) -> None:
        if act.id is not None:
            await self._insist(lambda: self._provider.forget(ForgetMemory(id=str(act.id), ctx=act.ctx)))
            id_ = None
        else:
            id_ = (await self._insist(lambda: self._provider.write(act.request()))).id
        self._diary.done(act, id_)
        self._note(act, id_)

    def _note(self, act: Act, id_: str | None) -> None:
        if act.kind == "forget":
            self._standing.pop(act.key, None)
        elif act.kind != "shared" and id_ is not None:
            self._standing[act.key] = id_

    async def _insist(self, call: Any) -> Any:
        """Call; where the server is killed too, again until it answers."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                return await call()
            except (OnfileError, SQLAlchemyError, OSError):
                if not self._patient or time.monotonic() > deadline:
                    raise
            await asyncio.sleep(0.05)


def live(url: str, diary: Path, name: str, seed: int, patient: bool, acts: int | None) -> None:
    """One life, in a process of its own."""
    if patient:
        # Its pool tells of each connection that the server's death took along.
        logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)
    asyncio.run(Writer(url, diary, name, seed=seed, patient=patient).live(acts))
