"""Events on the current OpenTelemetry span and in metrics: counts, never a scope token, key or fact."""

from __future__ import annotations

from functools import cache
from typing import Any

from opentelemetry import metrics, trace

from onfile.events import Event

_PREFIX = "onfile.memory"
# Payload members that are plain numbers, truth values, words of our own or opaque run ids; a scope token may hold a
# person's id, so it leaves the process only as its kind.
_SAFE = (
    "run",
    "scopes",
    "offered",
    "omitted",
    "pinned_omitted",
    "recalled",
    "prompt_chars",
    "chars",
    "count",
    "pinned",
    "act",
    "error",
)
_KNOWN_KINDS = ("actor", "tenant", "global")


def record(happened: Event) -> None:
    """Add the event to the current span and count it; nothing happens where no SDK is set up."""
    name = happened.name.replace(":", ".")
    attributes: dict[str, Any] = {
        f"{_PREFIX}.{member}": happened.payload[member] for member in _SAFE if happened.payload.get(member) is not None
    }
    scope = happened.payload.get("scope")
    kind: dict[str, Any] = {} if scope is None else {f"{_PREFIX}.scope_kind": scope_kind(scope)}
    # What failed and how is few values, and what an alert is set on.
    kind |= {
        f"{_PREFIX}.{member}": happened.payload[member] for member in ("act", "error") if member in happened.payload
    }
    trace.get_current_span().add_event(name, attributes | kind)
    _counter(name).add(1, kind)
    for member in ("offered", "omitted", "pinned_omitted", "prompt_chars", "chars"):
        if member in happened.payload:
            _histogram(f"{name}.{member}").record(happened.payload[member], kind)


def scope_kind(scope: str) -> str:
    """Answer `actor`, `tenant`, `global`, or `other` for what a host made up."""
    kind = scope.partition(":")[0]
    return kind if kind in _KNOWN_KINDS else "other"


@cache
def _counter(name: str) -> metrics.Counter:
    return metrics.get_meter("onfile").create_counter(name, description="how often it happened")


@cache
def _histogram(name: str) -> metrics.Histogram:
    return metrics.get_meter("onfile").create_histogram(name)
