"""The event loop of one command, loaded only when a command has work for it: help needs none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


def finish(work: Coroutine[Any, Any, T]) -> T:
    """Run the work to its end and answer its result."""
    import asyncio
    import logging

    # What a pool or a driver logs about a broken connection has a traceback; the command says it in a sentence.
    logging.lastResort = None
    return asyncio.run(work)
