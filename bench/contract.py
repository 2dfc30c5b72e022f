"""The provider contract on every database: one table, a clause a line, and whether they all keep the same ones.

    python -m bench.contract                       in memory, SQLite, PostgreSQL by both drivers, MariaDB
    python -m bench.contract --databases sqlite

`onfile conform` tries one provider; this tries the shipped ones on real servers. A database that is not installed is
left out, and a line says so. The exit code is 1 when a clause failed, or was tried on one database and not on another.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from sqlalchemy import delete

from bench.databases import NAMES, Databases, installed
from bench.load import versions
from bench.stand import RESULTS, machine
from onfile.stores import SqlMemoryProvider, metadata
from onfile.testing import CLAUSES, ConformReport, InMemoryMemoryProvider, conform

IN_MEMORY = "in memory"
_MARKS = {"passed": "ok", "failed": "BROKEN", "skipped": "-"}


@asynccontextmanager
async def emptied(url: str) -> AsyncGenerator[SqlMemoryProvider]:
    """A provider on a database in which nothing is on file: tables are made once, and emptied for each clause."""
    provider = SqlMemoryProvider.from_url(url)
    try:
        await provider.setup()
        async with provider.engine.begin() as conn:
            for table in reversed(metadata.sorted_tables):
                await conn.execute(delete(table))
        yield provider
    finally:
        await provider.aclose()


async def reports(names: Sequence[str]) -> dict[str, ConformReport]:
    """Try every clause on every database; in memory it is with recall, so that all of them apply."""
    found = {IN_MEMORY: await conform(lambda: InMemoryMemoryProvider(recall=True))}
    with Databases() as databases:
        for name in installed(names):
            url = databases.fresh(name)
            found[name] = await conform(lambda url=url: emptied(url))
            print(f"{name}: {found[name].passed} of {len(CLAUSES)} clauses passed", file=sys.stderr, flush=True)
    return found


def passed(report: ConformReport) -> set[str]:
    """The clauses that hold."""
    return {result.clause.name for result in report.results if result.status == "passed"}


def table(found: dict[str, ConformReport]) -> list[str]:
    """A clause a line, then how many of each capability hold, as Markdown."""
    heading = [f"| capability | clause | {' | '.join(found)} |", "|" + "---|" * (len(found) + 2)]
    lines = [
        f"| {clause.capability} | {clause.name} | "
        + " | ".join(_MARKS[report.results[place].status] for report in found.values())
        + " |"
        for place, clause in enumerate(CLAUSES)
    ]
    return [*heading, *lines, "", *summary(found)]


def summary(found: dict[str, ConformReport]) -> list[str]:
    """How many clauses of each capability hold."""
    counts = {
        name: Counter(result.clause.capability for result in report.results if result.status == "passed")
        for name, report in found.items()
    }
    capabilities = list(dict.fromkeys(clause.capability for clause in CLAUSES))
    return [
        f"| capability | clauses | {' | '.join(found)} |",
        "|" + "---|" * (len(found) + 2),
        *(
            f"| `{capability}` | {sum(clause.capability == capability for clause in CLAUSES)} | "
            + " | ".join(str(counted[capability]) for counted in counts.values())
            + " |"
            for capability in capabilities
        ),
        f"| all | {len(CLAUSES)} | " + " | ".join(str(report.passed) for report in found.values()) + " |",
    ]


def main() -> int:
    """Try, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--databases", nargs="+", default=list(NAMES), choices=NAMES)
    parser.add_argument("--json", type=Path, default=RESULTS / "contract.json")
    arguments = parser.parse_args()
    found = asyncio.run(reports(arguments.databases))
    print("\n".join(table(found)))
    for name, report in found.items():
        for result in report.results:
            if result.status == "failed":
                print(f"{name}: {result.clause.name}: {result.reason}")
    same = len({frozenset(passed(report)) for report in found.values()}) == 1
    print(f"\n{'the same clauses hold on each' if same else 'NOT the same clauses hold on each'}")
    kept = {
        "machine": machine() | versions(),
        "same": same,
        "clauses": {
            clause.name: {name: report.results[place].status for name, report in found.items()}
            for place, clause in enumerate(CLAUSES)
        },
    }
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
    print(f"wrote {arguments.json}")
    return int(not same or any(report.failed for report in found.values()))


if __name__ == "__main__":
    sys.exit(main())
