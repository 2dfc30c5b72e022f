"""Writers that are killed, and many that write and read at once: `bench.crash` and `bench.load`, in small."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[2]


def rows_of(bench: str, kept: Path, *arguments: str) -> list[dict[str, Any]]:
    """Run a bench, which ends with 0 when nothing was lost, and answer what it kept."""
    command = [sys.executable, "-m", f"bench.{bench}", "--json", str(kept), *arguments]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(kept.read_text("utf-8"))["rows"]


def test_writers_that_are_killed_lose_nothing_that_was_acknowledged_and_leave_nothing_half(shared_url, tmp_path):
    [row] = rows_of("crash", tmp_path / "crash.json", "--url", shared_url, "--times", "5", "--writers", "3")

    assert row["violations"] == {}
    assert row["acknowledged"] > 0
    assert row["met_committed"] + row["met_absent"] > 0


def test_writers_and_readers_in_many_processes_meet_no_error_and_lose_no_row(shared_url, tmp_path):
    load = {"--seconds": "3", "--writers": "2", "--readers": "2", "--actors": "50"}

    [row] = rows_of(
        "load", tmp_path / "load.json", "--url", shared_url, *(word for pair in load.items() for word in pair)
    )

    assert (row["errors"], row["lost"], row["twice"]) == (0, 0, 0)
    assert row["writes"] > 0
    assert row["reads"] > 0
