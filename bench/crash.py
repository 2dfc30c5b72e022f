"""Kill writers at random moments, and the database server under them; then look for anything lost or half.

    python -m bench.crash                                      50 kills on every database that is installed
    python -m bench.crash --databases sqlite --times 200 --seed 7
    python -m bench.crash --url postgresql://host/empty        an empty database that may be filled

Four processes write new facts, correct their own, write a few keys that all of them write, and forget, each write
with an idempotency key. One of them is killed with SIGKILL, at a moment that a die chooses, and what it was about
is looked at: it must be there whole or not at all. Another process takes its place, does the unacknowledged act
again with the same key, and goes on. With `--servers` (where the server is ours) every process of the server is
killed in the same way and started again, while the writers repeat what was not answered.

In the end every acknowledged write stands once, every fact is of one write alone, what was forgotten is gone, there
is a receipt for each write and no other, a vector for facts only and of their text, and revisions without a gap; the
database finds its own files sound, and on SQLite no text that is gone can be read in them after a vacuum. The exit
code is 1 when any of this is not so. The die is seeded; the moments are not, being a machine's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from sqlalchemy import make_url

from bench.crash_judge import Judge
from bench.crash_writer import live
from bench.databases import NAMES, Databases, Server, installed
from bench.load import versions
from bench.stand import RESULTS, machine

MOST_SECONDS = 0.3
AT_WORK = 0.9
_DOWN_SECONDS = 0.05
_PATIENCE_SECONDS = 120


class Trial:
    """Writers on one database, those who kill them, and who judges."""

    def __init__(self, url: str, folder: Path, *, writers: int, seed: int, server: Server | None = None) -> None:
        self._url, self._server, self._seed = url, server, seed
        self._dice = random.Random(seed)
        self._context = multiprocessing.get_context("forkserver")
        # Imported once, so that a new life begins at once.
        self._context.set_forkserver_preload(
            ["bench.crash_writer", "numpy", "aiosqlite", "asyncpg", "psycopg", "asyncmy"]
        )
        self._diaries = {f"w{number}": folder / f"w{number}" for number in range(writers)}
        self._living: dict[str, Any] = {}
        self._begun = dict.fromkeys(self._diaries, 0)
        self.judge = Judge(url, self._diaries)

    async def run(self, times: int, name: str) -> dict[str, Any]:
        started = time.monotonic()
        await self.judge.prepare()
        for writer in self._diaries:
            self._start(writer)
        for number in range(1, times + 1):
            writer = self._dice.choice(list(self._living))
            # Mostly someone who is at work by then, and sometimes one who has hardly begun.
            if self._dice.random() < AT_WORK:
                await self._at_work(writer)
            await asyncio.sleep(self._dice.uniform(0, MOST_SECONDS))
            for other, process in self._living.items():
                self.judge.expect(process.is_alive(), "a writer ended by itself", (other, process.exitcode))
            await (self._kill_server() if self._server else self._kill(writer))
            print(f"\r{name}: {number} of {times} killed", end="", file=sys.stderr, flush=True)
        for writer in list(self._living):
            await self._kill(writer, again=False)
        await self._finish()
        counted = await self.judge.in_the_end()
        await self.judge.aclose()
        left = await self.judge.left_in_the_file() if self._url.startswith("sqlite") else 0
        print(f"\r{'':50}\r", end="", file=sys.stderr)
        return {
            "database": name,
            "kills": times,
            **{kind: counted[kind] for kind in ("acknowledged", "new", "replace", "shared", "forget", "facts")},
            **{f"met_{what}": self.judge.seen[what] for what in ("committed", "absent", "idle")},
            "facts_without_a_vector": counted["facts_without_a_vector"],
            "texts_left_in_the_file": left,
            "violations": dict(self.judge.violations),
            "examples": self.judge.examples,
            "seconds": round(time.monotonic() - started, 1),
        }

    def _start(self, writer: str, acts: int | None = None) -> None:
        self._begun[writer] = self._told(writer)
        arguments = (self._url, self._diaries[writer], writer, self._seed, self._server is not None, acts)
        self._living[writer] = self._context.Process(target=live, args=arguments, daemon=True)
        self._living[writer].start()

    def _told(self, writer: str) -> int:
        diary = self._diaries[writer]
        return diary.stat().st_size if diary.exists() else 0

    async def _at_work(self, writer: str) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while self._told(writer) == self._begun[writer] and self._living[writer].is_alive():
            if time.monotonic() > deadline:
                self.judge.expect(False, "a writer did nothing", writer)
                return
            await asyncio.sleep(0.01)

    async def _kill(self, writer: str, *, again: bool = True) -> None:
        process = self._living.pop(writer)
        process.kill()
        await asyncio.to_thread(process.join)
        self.judge.expect(process.exitcode == -signal.SIGKILL, "a writer ended by itself", (writer, process.exitcode))
        await self.judge.after_kill(writer)
        if again:
            self._start(writer)

    async def _kill_server(self) -> None:
        assert self._server is not None
        await asyncio.to_thread(self._server.kill)
        await asyncio.sleep(self._dice.uniform(0, _DOWN_SECONDS))
        await asyncio.to_thread(self._server.start)
        await self.judge.connect_again()

    async def _finish(self) -> None:
        """Let everybody do what was left undone, and a few things more."""
        for writer in self._diaries:
            self._start(writer, acts=5)
        for writer, process in self._living.items():
            await asyncio.to_thread(process.join, _PATIENCE_SECONDS)
            self.judge.expect(process.exitcode == 0, "a writer could not finish", (writer, process.exitcode))


def tried(url: str, times: int, name: str, arguments: argparse.Namespace, server: Server | None) -> dict[str, Any]:
    """One trial, told."""
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(url, Path(folder), writers=arguments.writers, seed=arguments.seed, server=server)
        row = asyncio.run(trial.run(times, name))
    bad = sum(row["violations"].values())
    print(
        f"{name:26} {times:3} kills, {row['acknowledged']:6,} acts acknowledged; the killed were at something that was"
        f" there {row['met_committed']}, was not {row['met_absent']}, at nothing {row['met_idle']};"
        f" {bad} violations; {row['seconds']:.0f} s",
        flush=True,
    )
    for kind, count in row["violations"].items():
        print(f"    {count} × {kind}: {row['examples'][kind][:300]}")
    return row


def trials(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Every trial that is wanted and can be had."""
    if arguments.url:
        url = make_url(arguments.url)
        return [tried(arguments.url, arguments.times, url.drivername, arguments, None)]
    rows: list[dict[str, Any]] = []
    with Databases() as databases:
        for name in installed(arguments.databases):
            if arguments.times:
                rows.append(tried(databases.fresh(name), arguments.times, name, arguments, None))
            if arguments.servers and name != "sqlite":
                server = databases.server(name)
                what = f"{name}, server killed"
                rows.append(tried(databases.fresh(name), arguments.servers, what, arguments, server))
    return rows


def main() -> int:
    """Kill, judge, print; keep the numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=50, help="how many writers are killed on each database")
    parser.add_argument("--servers", type=int, default=5, help="how often each server is killed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--databases", nargs="+", default=list(NAMES), choices=NAMES)
    parser.add_argument("--url", help="an empty database, instead of those")
    parser.add_argument("--json", type=Path, default=RESULTS / "crash.json")
    arguments = parser.parse_args()
    rows = trials(arguments)
    kept = {"machine": machine() | versions(), "seed": arguments.seed, "writers": arguments.writers, "rows": rows}
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
    print(f"wrote {arguments.json}")
    return int(any(row["violations"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
