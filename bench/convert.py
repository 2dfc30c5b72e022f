"""Turn a data set's facts into the lines that `onfile import` reads.

python -m bench.convert locomo_L | onfile import -
python -m bench.convert path/to/some.facts.json --out some.jsonl
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from bench.datasets import DEFAULT_DATA, load_facts


def main() -> None:
    """Write one line per fact."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("facts", help="a *.facts.json file, or the name of a data set in the data folder")
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="the folder of the data sets")
    parser.add_argument("--author", default="agent", choices=["human", "agent"])
    parser.add_argument("--out", type=Path, help="where the lines go; standard output when left out")
    asked = parser.parse_args()
    path = next(
        (path for path in (Path(asked.facts), asked.data / f"{asked.facts}.facts.json") if path.is_file()), None
    )
    if path is None:
        parser.error(f"{asked.facts} is neither a file nor a data set in {asked.data}")
    lines = "".join(
        json.dumps(
            {"scope": scope, "key": key, "text": text, "author": asked.author, "updated_at": at.isoformat()},
            ensure_ascii=False,
        )
        + "\n"
        for scope, key, text, at in load_facts(path)
    ).encode()
    if asked.out is not None:
        asked.out.write_bytes(lines)
    else:
        sys.stdout.buffer.write(lines)  # bytes: a pipe has the locale's encoding


if __name__ == "__main__":
    main()
