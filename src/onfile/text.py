"""One line of text: what a fact and a key become before they are kept, and what none can hold."""

from __future__ import annotations

import re

# NUL is absent on purpose: no store can keep it, so it is refused by name, not turned into a space.
_BREAKS = re.compile("[\x01-\x1f\x7f-\x9f\u2028\u2029]+")
_UNKEEPABLE = re.compile("[\x00\ud800-\udfff]")


def one_line(text: str) -> str:
    """Put text on one line: each run of line breaks, tabs and controls one space, ends trimmed."""
    return _BREAKS.sub(" ", text).strip()


def unkeepable(text: str) -> str | None:
    """Name the character that no database can keep, or answer None when there is none.

    Returns:
        `"a NUL character"`, `"a lone surrogate"` or None.
    """
    found = _UNKEEPABLE.search(text)
    if found is None:
        return None
    return "a NUL character" if found.group() == "\x00" else "a lone surrogate"
