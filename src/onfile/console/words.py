"""What a tool call comes to, in a few words for a person who watches."""

from __future__ import annotations

from typing import Any, cast

from ..errors import OnfileError
from ..runs.journal import Json
from ..text import shown_text
from ..wire.redaction import ERASED

_LONGEST = 160


def call_words(tool: str, arguments: Json, *, outcome: str = "", result: str = "") -> str:
    """Answer one line about a call: what it was about, and once there is an outcome, what came of it."""
    given: dict[str, Any] = cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {}
    if tool == "remember":
        return _remembered(given, outcome=outcome, result=result)
    if tool == "skill":
        about = f"the procedure {_short(given.get('name', ''))}"
        return f"read {about}" if outcome == "success" else f"asked for {about}"
    if tool == "ask":
        return "asked you" + ("" if not outcome else ", and you answered")
    about = _short(", ".join(str(value) for value in given.values()))
    line = f"{tool}: {about}" if about else tool
    if outcome == "denied":
        return f"{line} (rejected, not done)"
    if outcome == "failed":
        return f"{line} (failed: {_short(result)})"
    return f"{line} (done)" if outcome else line


def failure_words(error: BaseException) -> str:
    """Say what stopped a turn, without the words of a driver or a provider, which may quote what was sent."""
    if isinstance(error, OnfileError):
        return str(error)
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return f"The model's provider refused with HTTP {status}"
    return f"The model did not answer ({type(error).__name__})"


def _remembered(given: dict[str, Any], *, outcome: str, result: str) -> str:
    if given.get("key") == ERASED:
        return "remembered something that was deleted since"
    about = _short(f"{given.get('key', '')}: {given.get('fact', '')}")
    if not outcome:
        return f"remembering {about}"
    if outcome == "failed" or not result.startswith(("Recorded", "Already on file")):
        return f"not remembered: {about}"
    return f"already on file: {about}" if result.startswith("Already") else f"remembered {about}"


def _short(value: object) -> str:
    line = shown_text(" ".join(str(value).split()))
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
