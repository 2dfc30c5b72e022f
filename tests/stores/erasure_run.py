"""Run by `test_erasure.py` in a process of its own: many facts come, change and go; then every byte is read.

Usage: python erasure_run.py FOLDER SEED KIND. Prints what was found, one JSON line.
"""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
import sys
from pathlib import Path

from sqlalchemy.ext.asyncio import create_async_engine

from onfile.provider import ForgetMemory, StoreMemory
from onfile.records import Actor, MemoryOrigin
from onfile.scopes import ScopeContext
from onfile.stores import SqlMemoryProvider

FOLDER, SEED, KIND = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]

CTX = ScopeContext(actor=Actor(id="ana"))


def traces(secrets: list[str]) -> list[str]:
    """The secrets that stand in any file of the folder."""
    everything = b"".join(path.read_bytes() for path in FOLDER.iterdir())
    return [secret for secret in secrets if secret.encode() in everything]


async def main() -> None:
    url = f"sqlite+aiosqlite:///{FOLDER}/onfile.db"
    store = SqlMemoryProvider.from_url(url) if KIND == "from_url" else SqlMemoryProvider(create_async_engine(url))
    await store.setup()
    dice = random.Random(SEED)
    number = 0

    async def write(key: str) -> tuple[str, str]:
        nonlocal number
        number += 1
        secret = f"planted-{number:06d}-{dice.getrandbits(64):016x}"
        text = secret + " " + "and so on " * dice.choice([0, 1, 5, 20, 20, 60, 700])
        request = StoreMemory(
            key=key, text=text, scope="actor:ana", origin=MemoryOrigin(author="human", run_id="r1"), ctx=CTX
        )
        return (await store.write(request)).id, secret

    gone: list[str] = []
    standing: dict[str, tuple[str, str]] = {}
    for place in range(200):
        standing[f"key-{place}"] = await write(f"key-{place}")
    for _ in range(400):
        key = dice.choice(list(standing))
        act = dice.random()
        if act < 0.4:
            gone.append(standing[key][1])
            standing[key] = await write(key)
        elif act < 0.75:
            id_, secret = standing.pop(key)
            gone.append(secret)
            assert await store.forget(ForgetMemory(id=id_, ctx=CTX))
        else:
            key = f"key-{number + 1000}"
            standing[key] = await write(key)
    left = traces(gone)
    seen = traces([secret for _, secret in standing.values()])
    for id_, secret in standing.values():
        gone.append(secret)
        assert await store.forget(ForgetMemory(id=id_, ctx=CTX))
    left_of_all = traces(gone)
    raw = sqlite3.connect(FOLDER / "onfile.db")
    build = raw.execute("PRAGMA secure_delete").fetchone()[0]
    raw.close()
    await store.aclose()
    await store.engine.dispose()
    sys.stdout.write(
        json.dumps(
            {
                "sqlite": sqlite3.sqlite_version,
                "secure_delete": build,
                "gone": len(gone),
                "left": len(left),
                "left_of_all": len(left_of_all),
                "seen": len(seen),
                "standing": len(standing),
            }
        )
    )


asyncio.run(main())
