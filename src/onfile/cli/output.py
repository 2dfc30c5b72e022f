"""What a command prints: results on standard output, everything said about them on standard error."""

from __future__ import annotations

import json
import os
import re
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from rich.console import Console

_PIPED_WIDTH = 120
# What would move a terminal's cursor, change its title or turn a line around, and what no terminal can encode.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_SURROGATES = re.compile("[\ud800-\udfff]")


def write(text: str) -> None:
    """Print text as it is, with no line break of its own."""
    sys.stdout.write(text)


def harmless(text: str) -> str:
    """Answer what people and models said as a terminal may be given it: controls spelled out, all else as it is."""
    return _UNPRINTABLE.sub(lambda found: ascii(found.group())[1:-1], text)


def write_json(value: Any) -> None:
    """Print one JSON document, other scripts as themselves."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    write(_SURROGATES.sub(lambda found: ascii(found.group())[1:-1], text) + "\n")


@contextmanager
def json_array() -> Generator[Callable[[Any], None]]:
    """Print one JSON array, each member when it is put: the same bytes as `write_json` of them all."""
    between = "[\n  "

    def put(value: Any) -> None:
        nonlocal between
        write(between + json.dumps(value, ensure_ascii=False, indent=2).replace("\n", "\n  "))
        between = ",\n  "

    yield put
    write("[]\n" if between.startswith("[") else "\n]\n")


def note(sentence: str) -> None:
    """Say something about the result where it does not get into the result."""
    sys.stdout.flush()
    sys.stderr.write(f"{sentence}\n")


def console(*, errors: bool = False) -> Console:
    """Answer a console that takes text literally: a fact in brackets is no markup."""
    from rich.console import Console

    stream = sys.stderr if errors else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else _PIPED_WIDTH
    return Console(file=stream, width=width, markup=False, highlight=False, emoji=False)


def counted(count: int, noun: str) -> str:
    """Answer `1 fact`, `3,000 facts`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
