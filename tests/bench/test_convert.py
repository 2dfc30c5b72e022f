"""A benchmark's facts become the lines that `onfile import` reads."""

import json
import subprocess
import sys
from pathlib import Path

from onfile.wire.lines import parse_line

PROJECT = Path(__file__).parents[2]


def test_a_data_set_becomes_lines_that_an_import_reads(tmp_path: Path):
    facts = {"facts": [["tenant:freight", "請求先", "the invoice goes to Osaka", "2026-05-08T13:56:00"]]}
    data = tmp_path / "small.facts.json"
    data.write_text(json.dumps(facts), "utf-8")

    converted = subprocess.run(
        [sys.executable, "-m", "bench.convert", str(data)], cwd=PROJECT, capture_output=True, check=True
    )

    [line] = converted.stdout.decode("utf-8").splitlines()
    memory = parse_line(line)
    assert (memory.scope, memory.key, memory.text) == ("tenant:freight", "請求先", "the invoice goes to Osaka")
    assert memory.updated_at is not None
    assert memory.updated_at.isoformat() == "2026-05-08T13:56:00+00:00"
