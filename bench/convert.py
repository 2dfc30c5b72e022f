"""Turn a benchmark's `*.facts.json` into the lines that `onfile import` reads.

    python -m bench.convert ../shared/data/locomo_S.facts.json | onfile import -

A data set is `{"facts": [[scope, key, text, time], ...]}`; times without a zone are UTC. The data
sets are not part of this project: their licences forbid shipping them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path


def lines(path: Path) -> Iterator[str]:
    """One JSON line a fact, as the model's own note: nobody stated what a data set says."""
    for scope, key, text, moment in json.loads(path.read_text("utf-8"))["facts"]:
        when = datetime.fromisoformat(moment)
        when = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
        fact = {"scope": scope, "key": key, "text": text, "author": "agent", "updated_at": when.isoformat()}
        yield json.dumps(fact, ensure_ascii=False)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.convert", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("facts", type=Path, help="a *.facts.json file")
    parser.add_argument("--out", type=Path, help="where the lines go; standard output when left out")
    asked = parser.parse_args()
    if not asked.facts.is_file():
        parser.error(f"{asked.facts} is no file; name a data set such as ../shared/data/locomo_S.facts.json")
    if asked.out is not None:
        asked.out.write_text("".join(line + "\n" for line in lines(asked.facts)), "utf-8")
    else:
        sys.stdout.reconfigure(encoding="utf-8")  # a pipe has the locale's encoding
        sys.stdout.writelines(line + "\n" for line in lines(asked.facts))


if __name__ == "__main__":
    main()
