"""The provider contract: every promise that a provider makes by having a method, tried on a fresh one."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal, cast

from ..provider import MemoryProvider, can_write
from ..scopes import GLOBAL_SCOPE
from . import clauses_forget, clauses_list, clauses_pin, clauses_retry, clauses_search, clauses_write
from .acts import ACME, ANNS, BOBS, listed
from .clause import Clause, ClauseFailed, expect, missing_capability

CLAUSES: tuple[Clause, ...] = (
    *clauses_list.CLAUSES,
    *clauses_forget.CLAUSES,
    *clauses_write.CLAUSES,
    *clauses_retry.CLAUSES,
    *clauses_search.CLAUSES,
    *clauses_pin.CLAUSES,
)
"""Every clause, in the order in which a provider is best written: what fails first matters most."""

SECONDS_PER_CLAUSE = 120.0
"""Longer than any clause takes on a slow disk; a provider that waits for itself is not waited for."""

Factory = Callable[[], Any]
"""Answers a fresh, empty provider: itself, an awaitable of it, or an async context manager that yields it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClauseResult:
    """What trying one clause on one provider came to."""

    clause: Clause
    status: Literal["passed", "skipped", "failed"]
    reason: str = ""
    """Why it was skipped or how it failed, in a sentence; empty when it passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformReport:
    """What trying every clause came to."""

    results: tuple[ClauseResult, ...]

    @property
    def passed(self) -> int:
        """How many clauses hold."""
        return self._count("passed")

    @property
    def failed(self) -> int:
        """How many clauses are broken."""
        return self._count("failed")

    @property
    def skipped(self) -> int:
        """How many clauses are about what the provider does not claim."""
        return self._count("skipped")

    @property
    def ok(self) -> bool:
        """Whether no clause is broken."""
        return not self.failed

    def _count(self, status: str) -> int:
        return sum(result.status == status for result in self.results)


async def check(clause: Clause, factory: Factory) -> ClauseResult:
    """Try one clause on a provider of its own.

    Args:
        clause: One of `CLAUSES`.
        factory: Called once. A provider that it answers plainly and that has `aclose()` is closed
            afterwards; one from a context manager is closed by leaving that.

    Returns:
        `skipped` when the provider does not claim what the clause is about. Whatever the provider
        raises makes the clause `failed`; only a cancellation goes on to the caller.
    """
    try:
        async with asyncio.timeout(SECONDS_PER_CLAUSE), _opened(factory) as provider:
            missing = missing_capability(clause, provider)
            if missing is not None:
                return ClauseResult(clause=clause, status="skipped", reason=_why_skipped(clause, missing))
            await _expect_empty(provider)
            await clause.run(provider)
    except ClauseFailed as broken:
        return ClauseResult(clause=clause, status="failed", reason=str(broken))
    except TimeoutError:
        reason = f"the provider did not answer within {SECONDS_PER_CLAUSE:.0f} seconds, or timed out by itself"
        return ClauseResult(clause=clause, status="failed", reason=reason)
    except Exception as error:  # noqa: BLE001  # a provider may raise anything, and that is the finding
        first_line = str(error).partition("\n")[0]
        reason = f"the provider raised {type(error).__name__}: {first_line}"
        return ClauseResult(clause=clause, status="failed", reason=reason)
    return ClauseResult(clause=clause, status="passed")


async def conform(make_provider: Factory, *, on_result: Callable[[ClauseResult], None] | None = None) -> ConformReport:
    """Try every clause, one after the other, each on a fresh provider.

    Args:
        make_provider: As for `check`.
        on_result: Called with each result as it comes, to show progress.
    """
    results: list[ClauseResult] = []
    for clause in CLAUSES:
        result = await check(clause, make_provider)
        results.append(result)
        if on_result is not None:
            on_result(result)
    return ConformReport(results=tuple(results))


@asynccontextmanager
async def _opened(factory: Factory) -> AsyncGenerator[MemoryProvider]:
    made: object = factory()
    if inspect.isawaitable(made):
        made = await cast("Awaitable[object]", made)
    if isinstance(made, MemoryProvider):
        try:
            yield made
        finally:
            close = getattr(made, "aclose", None)
            if close is not None:
                await close()
    elif isinstance(made, AbstractAsyncContextManager):
        async with cast("AbstractAsyncContextManager[object]", made) as entered:
            yield _as_provider(entered)
    else:
        yield _as_provider(made)


def _as_provider(made: object) -> MemoryProvider:
    if isinstance(made, MemoryProvider):
        return made
    msg = f"the factory answered a {type(made).__name__}, which lacks `list` or `forget`; every provider has both"
    raise ClauseFailed(msg)


async def _expect_empty(provider: MemoryProvider) -> None:
    # A read-only provider comes with its facts; one that can write and comes with some is not fresh,
    # and every clause would fail for a reason that is not the provider's.
    if can_write(provider):
        left = await listed(provider, ANNS, BOBS, ACME, GLOBAL_SCOPE)
        expect(
            not left,
            f"the factory answered a provider with {len(left)} records on file; each clause needs an empty one",
        )


def _why_skipped(clause: Clause, missing: str) -> str:
    if missing == "report":
        return "the provider does not claim guards_writes = True, so Memory reads before it writes"
    if missing == clause.capability:
        return f"the provider has no `{missing}`"
    return f"the provider has no `{missing}`, which this clause needs to put facts on file first"
