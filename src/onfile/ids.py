"""Record ids: `mem_` and a ULID, so that ids sort by when they were made."""

from __future__ import annotations

import os
import threading
import time

# Crockford's base 32: no I, L, O or U, so that an id read aloud or copied by hand stays itself.
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ULID_CHARS = 26
_RANDOM_BITS = 80
_LAST_MS = 2**48 - 1


class _Ticker:
    """Hands out 128-bit numbers that rise, from any thread.

    Within one millisecond the random part counts up from where it started, and a clock that steps
    back is not followed, so a later number never sorts before an earlier one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ms = -1
        self._random = 0

    def next_at(self, ms: int, *, follow_back: bool) -> int:
        with self._lock:
            if ms > self._ms or (follow_back and ms != self._ms):
                self._ms = ms
                # The top bit starts out clear: counting up never runs over into the time.
                self._random = int.from_bytes(os.urandom(_RANDOM_BITS // 8), "big") >> 1
            else:
                self._random += 1
            return (self._ms << _RANDOM_BITS) | self._random


# Two on purpose: a time that a caller hands in (an import, a test's clock) neither holds back nor
# pushes ahead the ids that are made by the wall clock.
_by_wall_clock = _Ticker()
_by_given_time = _Ticker()


def new_id(prefix: str = "mem_", *, now_ms: int | None = None) -> str:
    """Make an id that no other process makes and that sorts after every earlier one of this process.

    Args:
        prefix: What the id starts with.
        now_ms: Milliseconds since 1970, below 2**48; None reads the wall clock. Ids made at one
            given time rise too; a given time is kept as it is even when it lies before the last.

    Returns:
        The prefix and 26 characters: 48 bits of time, 80 of randomness (https://github.com/ulid/spec).

    Raises:
        ValueError: `now_ms` does not fit into 48 bits.
    """
    if now_ms is None:
        number = _by_wall_clock.next_at(time.time_ns() // 1_000_000, follow_back=False)
    elif 0 <= now_ms <= _LAST_MS:
        number = _by_given_time.next_at(now_ms, follow_back=True)
    else:
        msg = "now_ms must be milliseconds since 1970 and fit into 48 bits"
        raise ValueError(msg)
    return prefix + "".join(_ALPHABET[(number >> 5 * place) & 31] for place in reversed(range(_ULID_CHARS)))


def _forget_the_parent() -> None:
    # A forked child would go on counting from its parent's number, and both would make the same ids.
    global _by_wall_clock, _by_given_time
    _by_wall_clock, _by_given_time = _Ticker(), _Ticker()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_the_parent)
