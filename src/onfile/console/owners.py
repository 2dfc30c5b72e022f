"""Who carries a turn: this process, named so that another one can tell whether it still lives."""

from __future__ import annotations

import os
import socket

_KIND = "chat"


def this_process() -> str:
    """Name this process as the owner of turns."""
    return f"{_KIND}:{os.getpid()}:{socket.gethostname()[:200]}"


def is_gone(owner: str | None) -> bool:
    """Tell whether an owner is surely dead: a process of this machine that does not exist any more.

    False where that cannot be known; such an owner is given up when it was not seen for a while.
    """
    kind, _, rest = (owner or "").partition(":")
    number, _, host = rest.partition(":")
    if kind != _KIND or not number.isdecimal() or host != socket.gethostname()[:200] or os.name == "nt":
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return False
