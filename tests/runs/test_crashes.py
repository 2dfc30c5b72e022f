"""A turn whose process is killed is finished by another one; the whole matrix is `python -m bench.crash_runs`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.runs.conftest import sql_url, without_dbos

# One of each kind of death: around the digest, inside and after the fact's transaction, in a read
# that is done again, with an approval just given, inside the transaction that ends the run.
POINTS = [
    "after-memory.digest",
    "during-tool.c1",
    "after-tool.c1",
    "during-tool.c2",
    "after-approval.c3",
    "during-persist.run.end",
]


def matrix(project: Path, engine: str, url: str, *points: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "bench.crash_runs", "--engine", engine, "--url", url, "--only", *points],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


async def test_a_turn_killed_anywhere_is_finished_with_the_same_block_and_one_fact(project: Path, sqlite_url: str):
    assert matrix(project, "sql", sqlite_url, *POINTS) == "6 of 6 points of death, 1 block in all of them"


@pytest.mark.parametrize("kind", ["postgres", "mariadb"])
async def test_so_it_is_on_a_server(request: pytest.FixtureRequest, project: Path, kind: str):
    url = await sql_url(request, kind)

    assert matrix(project, "sql", url, *POINTS[1:4]) == "3 of 3 points of death, 1 block in all of them"


async def test_so_it_is_where_dbos_gives_the_run_to_another_worker(request: pytest.FixtureRequest, project: Path):
    url = await without_dbos(await sql_url(request, "postgres"))

    assert matrix(project, "dbos", url, *POINTS[1::2]) == "3 of 3 points of death, 1 block in all of them"


@pytest.fixture(autouse=True)
def _only_where_processes_fork() -> None:
    if not hasattr(__import__("os"), "fork"):
        pytest.skip("this system cannot fork")
