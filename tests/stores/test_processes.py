"""Many processes on one database: nothing is lost, nothing is half.

Every writer sets up first, so that each test here is also a set-up by eight at once.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from onfile.stores import SqlMemoryProvider
from tests.stores.desk import Desk

HERE = Path(__file__).parent
ROUNDS = 25


def run_all(script: str, *arguments: str) -> None:
    """Start eight at once, wait for them all, and fail if one failed."""
    command = [sys.executable, HERE / script, *arguments]
    running = [
        subprocess.Popen([*command, f"p{number}"], stderr=subprocess.PIPE, text=True)
        if script == "writer_run.py"
        else subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        for number in range(8)
    ]
    errors = [process.communicate(timeout=180)[1] for process in running]
    assert [process.returncode for process in running] == [0] * 8, "\n".join(errors)


async def test_eight_processes_set_up_and_write_480_facts_without_an_error(shared_url):
    run_all("writer_run.py", shared_url, "60", "own")

    store = SqlMemoryProvider.from_url(shared_url)
    records = await Desk(store).list()
    assert len(records) == 480
    assert len({record.id for record in records}) == 480
    assert all(record.text.endswith("to the end") for record in records)
    await store.aclose()


async def test_writers_of_one_key_in_eight_processes_leave_one_whole_row(shared_url):
    run_all("writer_run.py", shared_url, "15", "same")

    store = SqlMemoryProvider.from_url(shared_url)
    [record] = await Desk(store).list()
    assert record.text.endswith(" wrote 14 " + "and so on " * 20 + "to the end")
    await store.aclose()


def test_setting_up_sqlite_by_eight_processes_at_once_fails_in_no_round(tmp_path):
    urls = [f"sqlite:///{tmp_path}/round{number}.db" for number in range(ROUNDS)]

    run_all("setup_run.py", str(time.time() + 4), "0.25", *urls)
