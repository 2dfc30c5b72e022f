"""Text: what a fact and a key become before they are kept, and how they are shown to a model."""

from __future__ import annotations

import re

LONGEST_TOKEN = 255
"""Code points that every store can keep of a scope, a key or an id."""

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


def why_not_kept(text: str, *, most: int | None = None) -> str | None:
    """Say why no store can keep a text, in words that follow its name, or answer None when a store can.

    The one place for these words: a refusal reads the same from every store, and before any store.

    Args:
        text: Any text.
        most: How many code points a store keeps of it; None for a text without such a limit.

    Returns:
        `"holds a NUL character, which no store can keep"`, or about its length.
    """
    character = unkeepable(text)
    if character is not None:
        return f"holds {character}, which no store can keep"
    if most is not None and len(text) > most:
        return f"has {len(text)} characters and a store keeps at most {most}"
    return None


def keepable_token(token: object) -> bool:
    """Tell whether a scope or an id can be in a store at all; any other matches nothing and raises nothing."""
    return isinstance(token, str) and 0 < len(token) <= LONGEST_TOKEN and unkeepable(token) is None


# What follows makes one fact one line. Text that holds nothing unusual (nearly all) is only searched.

_SURROGATES = re.compile("[\ud800-\udfff]")
# Direction marks, embeddings, overrides and isolates: what makes a line read otherwise than it is.
_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
# Tag characters spell text that no person sees; the flags of England, Scotland and Wales need them.
_HIDDEN = re.compile(f"(\U0001f3f4[\U000e0020-\U000e007e]{{1,6}}\U000e007f)|[{_BIDI}\U000e0000-\U000e007f]")
_ANY_BREAKS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_UNUSUAL = re.compile(f"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff{_BIDI}\U000e0000-\U000e007f<\uff1c\ufe64]")
# Any spelling of the block's tag: whatever is no letter before the name and between its letters (white
# space, slashes, marks, fillers that count as letters but are not seen), capitals and full-width
# forms. The two classes share no character, so that a search stays linear.
_NO_LETTER = "(?:[^\\w<\uff1c\ufe64]|[\u115f\u1160\u3164\uffa0])*"
_TAG = re.compile(
    f"[<\uff1c\ufe64](?={_NO_LETTER}"
    + _NO_LETTER.join(f"[{letter}{chr(ord(letter) + 0xFEE0)}]" for letter in "memory")
    + ")",
    re.IGNORECASE,
)
_HIDING = f"\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029\\ud800-\\udfff{_BIDI}\\U000e0000-\\U000e007f"
_SCOPE_ESCAPES = re.compile(f"[\\[\\]{_HIDING}]")
_ID_ESCAPES = re.compile(f"[{_HIDING}]")


def shown_text(text: str) -> str:
    """Answer text as a block shows it: one line, nothing hidden, no spelling of the block's tag."""
    if not _UNUSUAL.search(text):
        return text
    text = _SURROGATES.sub("\ufffd", text)
    text = _HIDDEN.sub(r"\1", text)
    text = _ANY_BREAKS.sub(" ", text)
    # The look-alike keeps the text readable; an ordinary `a < b` has no tag after it and stays.
    return _TAG.sub("\u2039", text)


def shown_scope(scope: str) -> str:
    """Answer a scope as a block shows it: `[`, `]` and what cannot be shown percent-encoded."""
    shown = _SCOPE_ESCAPES.sub(_percent, scope)
    return _TAG.sub(_percent, shown)


def shown_id(id: str) -> str:  # noqa: A002  # the record's own field name
    """Answer an id as a listing shows it, for people: on one line, what cannot be shown percent-encoded."""
    return _ID_ESCAPES.sub(_percent, id)


def _percent(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found.group().encode("utf-8", "surrogatepass"))
