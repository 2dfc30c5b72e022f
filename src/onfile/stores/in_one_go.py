"""Work on SQLite in one go, in the driver's thread: from BEGIN to COMMIT nobody else has to be waited for.

Statement by statement, each would cross to that thread and back three or four times with the write
lock held, and on a busy machine every crossing waits for a processor.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sqlalchemy import exc

from .failures import is_locked
from .steps import NOTHING, Answer

if TYPE_CHECKING:
    import sqlite3

    from sqlalchemy.engine import Dialect
    from sqlalchemy.types import TypeEngine

    from .steps import Ask, Steps

T = TypeVar("T")
Process = Callable[[Any], Any]

READ_PRAGMAS = (
    "SELECT (SELECT foreign_keys FROM pragma_foreign_keys), (SELECT secure_delete FROM pragma_secure_delete),"
    " (SELECT timeout FROM pragma_busy_timeout)"
)
_SECURE_DELETE = {0: "OFF", 1: "ON", 2: "FAST"}
OUTSIDE = "SAVEPOINT onfile; ROLLBACK;"
"""Ends whatever transaction is open, if any: SAVEPOINT opens one where none is, for ROLLBACK to end."""


def begin_script(busy_ms: int) -> str:
    """Spell the beginning of a transaction of ours, on a connection in whatever state its owner keeps it.

    The write lock is taken at once: a deferred transaction could not wait for its turn to write, it would fail.
    """
    return f"{OUTSIDE} PRAGMA foreign_keys=ON; PRAGMA secure_delete=ON; PRAGMA busy_timeout={busy_ms}; BEGIN IMMEDIATE"


def put_back_script(pragmas: Sequence[Any]) -> str:
    """Spell how a connection gets back the pragmas that `READ_PRAGMAS` found."""
    foreign_keys, secure_delete, busy_timeout = pragmas
    return (
        f"PRAGMA foreign_keys={foreign_keys}; PRAGMA secure_delete={_SECURE_DELETE[secure_delete]};"
        f" PRAGMA busy_timeout={busy_timeout}"
    )


@dataclass(slots=True, kw_only=True)
class Outcome(Generic[T]):
    """How it went. What was raised is carried here, because the driver logs what its thread raises."""

    value: T | None = None
    error: BaseException | None = None
    removed_text: bool = False
    locked: bool = False
    """Another connection held the write lock for as long as was waited; nothing was done."""

    def unwrap(self) -> T:
        """Answer the value, or raise what was raised."""
        if self.error is not None:
            raise self.error
        return self.value  # pyright: ignore[reportReturnType]  # set wherever no error is


def can_go(driver: object) -> bool:
    """Tell whether the driver lets a function run in its thread. aiosqlite does, though by a private name only."""
    kind = type(driver)  # not the driver itself: a closed one raises where it is asked
    return hasattr(kind, "_execute") and hasattr(kind, "_conn")


async def go(driver: Any, dialect: Dialect, begin: Callable[[], Steps[T]], *, busy_ms: int) -> Outcome[T]:
    """Do the work as one transaction in the driver's thread.

    Nothing is passed as an argument, for the driver logs arguments.
    """
    context = copy_context()

    def work() -> Outcome[T]:
        return context.run(_transaction, driver._conn, dialect, begin, busy_ms)

    return await driver._execute(work)


def _transaction(raw: sqlite3.Connection, dialect: Dialect, begin: Callable[[], Steps[T]], busy_ms: int) -> Outcome[T]:
    outcome, error_type = Outcome[T](), dialect.loaded_dbapi.Error
    was_open = raw.in_transaction
    try:
        pragmas = raw.execute(READ_PRAGMAS).fetchone()
        try:
            _work(raw, dialect, begin, busy_ms, outcome)
        finally:
            with contextlib.suppress(error_type):  # a connection that is gone has nothing to put back
                raw.executescript(f"{OUTSIDE} {put_back_script(pragmas)}{'; BEGIN' if was_open else ''}")
    except error_type as error:
        outcome.error = _spelled(error)
    except BaseException as error:  # noqa: BLE001  # raised again where it was asked for
        outcome.error = error
    return outcome


def _work(
    raw: sqlite3.Connection, dialect: Dialect, begin: Callable[[], Steps[T]], busy_ms: int, outcome: Outcome[T]
) -> None:
    if not _begun(raw, dialect, busy_ms):
        outcome.locked = True
        return
    steps, answer = begin(), None
    while True:
        try:
            ask = next(steps) if answer is None else steps.send(answer)
        except StopIteration as done:
            raw.execute("COMMIT")
            outcome.value = done.value
            return
        outcome.removed_text |= ask.removes_text
        answer = NOTHING if ask.only_if is not None else _ask(raw, dialect, ask)


def _begun(raw: sqlite3.Connection, dialect: Dialect, busy_ms: int) -> bool:
    """Take the write lock, or answer False where it was not to be had for so long.

    Asked for every few milliseconds, which is how long the others hold it: SQLite's own waiting soon
    sleeps for a tenth of a second at a time, and whoever came last is served before.
    """
    until = time.monotonic() + busy_ms / 1000
    while True:
        try:
            raw.executescript(begin_script(0))
        except dialect.loaded_dbapi.Error as error:
            if not is_locked(error):
                raise
            if time.monotonic() > until:
                return False
            time.sleep(0.001 + 0.003 * random.random())  # noqa: S311  # spreads retries, guards nothing
        else:
            raw.execute(f"PRAGMA busy_timeout={busy_ms}").close()
            return True


def _ask(raw: sqlite3.Connection, dialect: Dialect, ask: Ask) -> Answer:
    if isinstance(ask.values, Mapping):
        prepared = _prepare(ask.statement, tuple(ask.values), dialect)
        cursor = raw.execute(prepared.sql, prepared.arguments(ask.values))
    else:
        prepared = _prepare(ask.statement, tuple(ask.values[0]), dialect)
        cursor = raw.executemany(prepared.sql, [prepared.arguments(values) for values in ask.values])
    rows = [prepared.row(row) for row in cursor.fetchall()] if prepared.columns else ()
    answer = Answer(rows=rows, count=cursor.rowcount)
    cursor.close()
    return answer


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prepared:
    sql: str
    binds: Sequence[tuple[str, Process | None]]
    columns: Sequence[Process | None]

    def arguments(self, values: Mapping[str, Any]) -> list[Any]:
        return [values[name] if process is None else process(values[name]) for name, process in self.binds]

    def row(self, row: Sequence[Any]) -> Sequence[Any]:
        return [value if read is None else read(value) for value, read in zip(row, self.columns, strict=True)]


# The statements are constants of this package, so that there are as many entries as statements.
@lru_cache(maxsize=256)
def _prepare(statement: Any, keys: tuple[str, ...], dialect: Dialect) -> _Prepared:
    """Spell a statement once; the types of its columns say how values go in and come out, as in SQLAlchemy."""
    compiled = statement.compile(dialect=dialect, column_keys=list(keys))
    columns: Sequence[Any] = [*statement.selected_columns] if statement.is_select else ()

    def implemented(type_: TypeEngine[Any]) -> TypeEngine[Any]:
        return type_.dialect_impl(dialect)

    return _Prepared(
        sql=str(compiled),
        binds=[(name, implemented(compiled.binds[name].type).bind_processor(dialect)) for name in compiled.positiontup],
        columns=[implemented(column.type).result_processor(dialect, None) for column in columns],
    )


def _spelled(error: Exception) -> exc.DBAPIError:
    """The driver's error as SQLAlchemy spells it, without statement and values."""
    kind = getattr(exc, type(error).__name__, exc.DBAPIError)
    return kind(None, None, error, hide_parameters=True)
