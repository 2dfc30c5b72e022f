"""A data set as lines that `onfile import` reads.

python -m bench.convert locomo_L > locomo_L.jsonl && onfile import locomo_L.jsonl
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from bench.datasets import DEFAULT_DATA, load


def main() -> None:
    """Write one line per fact."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--author", default="human", choices=["human", "agent"])
    arguments = parser.parse_args()
    for scope, key, text, at in load(arguments.name, folder=arguments.data).facts:
        line = {"scope": scope, "key": key, "text": text, "author": arguments.author, "updated_at": at.isoformat()}
        sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
