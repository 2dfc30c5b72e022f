"""The command line: what an operator does with the facts on file."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from .failures import INSTALL, NEEDED

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and answer its exit code.

    0 when it was done, 1 when a check failed or only a part was done, 2 when it could not be done
    (one sentence on standard error says why), 130 when it was interrupted.

    Args:
        arguments: What follows `onfile`; None takes those of the process.
    """
    try:
        from .application import run
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in NEEDED:
            raise
        sys.stderr.write(f"onfile: {INSTALL}\n")
        return 2
    except KeyboardInterrupt:
        return 130
    return run(arguments)
