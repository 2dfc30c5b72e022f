"""What a store raises when its database fails: one sentence that says what to do, and no fact in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, SQLAlchemyError, StatementError

from ..errors import StoreError
from .journals import journal_metadata

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

_NO_TABLE_STATES = {"42P01", "42S02"}
_NO_SUCH_TABLE = 1146
_WITHHELD_STATE = "42501"
_HELD_STATE = "55P03"
# No such database, no such role or none that may come in, a wrong password.
_NOT_LET_IN_STATES = {"3D000", "28000", "28P01"}
_WITHHELD_CODES = {1142, 1143}
# No access, no such database, too many connections, a lock that was waited for too long.
_MYSQL_CONNECTION_CODES = {1040, 1044, 1045, 1049, 1205}
_MYSQL_CLIENT_CODES = range(2000, 3000)
_LOCKED = ("database is locked", "database table is locked", "database schema is locked")


async def spoken(work: Awaitable[T]) -> T:
    """Await the work, and turn what its driver raises into a `StoreError` without content.

    A lost connection and its like pass through as what they are, so that the host's own handling of
    them still works, but with the statement's parameters hidden.
    """
    try:
        return await work
    except SQLAlchemyError as error:
        failure = _failure(error)
        if failure is None:
            raise
    # Raised out here: inside the handler the driver's error, which quotes rows, would stay its context.
    raise failure


async def read_again(reading: Callable[[], Awaitable[T]]) -> T:
    """Read, and once more where the connection was dead: as all of a pool's are when the server was started anew."""
    try:
        return await reading()
    except DBAPIError as error:
        if not is_lost_connection(error):
            raise
    return await reading()


def _failure(error: SQLAlchemyError) -> StoreError | None:
    if isinstance(error, StatementError):
        error.hide_parameters = True
    if not isinstance(error, StatementError) or getattr(error, "connection_invalidated", False):
        return None
    if is_missing_table(error):
        return _not_set_up(error)
    if sqlstate(error) in _NOT_LET_IN_STATES:
        return StoreError(
            "the server has no such database or user, or it refuses the password; check the URL, and create the "
            "database first: `setup()` makes tables, not databases"
        )
    if is_locked(error):
        return locked()
    if sqlstate(error) == _HELD_STATE:
        return StoreError("another transaction kept a table of onfile's too long; look for one that is kept open")
    if _is_damaged(error):
        return StoreError(
            "the database's file is damaged; put a back-up in its place, or what SQLite's `.recover` saves"
        )
    if _is_withheld(error):
        return StoreError(
            "the database role may not do this; grant it what it needs, and let the owner of onfile's tables change "
            "them (`onfile db upgrade`) and say who may use them (`onfile db rls --role`)"
        )
    if isinstance(error, OperationalError) and _is_of_the_connection(error):
        return None
    return StoreError(
        f"the database refused a statement ({type(error).__name__}{_state(error)}); "
        "check that its tables are the ones that this version's `setup()` makes"
    )


def _not_set_up(error: StatementError) -> StoreError:
    """Name the `setup()` that was not called: the one of the facts does not make the tables of runs."""
    if any(table in str(error.orig) for table in journal_metadata.tables):
        return StoreError("the database has no tables for runs; call `await journal.setup()` once before the first use")
    return StoreError("the database has no onfile tables; call `await provider.setup()` once before the first use")


def _is_withheld(error: StatementError) -> bool:
    return sqlstate(error) == _WITHHELD_STATE or (error.orig is not None and _code(error.orig) in _WITHHELD_CODES)


def _is_damaged(error: StatementError) -> bool:
    return str(error.orig) in {"database disk image is malformed", "file is not a database"}


def _is_of_the_connection(error: OperationalError) -> bool:
    """MySQL calls also a broken constraint operational; its message may quote what broke it."""
    code = _code(error.orig) if error.orig is not None else None
    return code is None or code in _MYSQL_CONNECTION_CODES or code in _MYSQL_CLIENT_CODES


def locked() -> StoreError:
    """The error of a SQLite database that another process holds on to."""
    return StoreError(
        "the database stayed locked by another process for half a minute, so nothing was written; "
        "look for one that keeps a transaction open"
    )


def is_locked(error: BaseException) -> bool:
    """Tell whether SQLite gave up waiting for another connection."""
    said = str(getattr(error, "orig", error))
    return said.startswith(_LOCKED)


def is_missing_table(error: StatementError) -> bool:
    """Tell whether a statement failed because `setup()` was never run."""
    original = error.orig
    if original is None:
        return False
    if sqlstate(error) in _NO_TABLE_STATES or _code(original) == _NO_SUCH_TABLE:
        return True
    return str(original).startswith("no such table: ")


def is_lost_race(error: BaseException) -> bool:
    """Tell whether another transaction got in between, so that doing it all again will do."""
    if isinstance(error, IntegrityError):
        return True
    if not isinstance(error, DBAPIError) or error.orig is None:
        return False
    # Serialization failure and deadlock: 40001 and 40P01 in PostgreSQL; 1213 and 1020 in MySQL and MariaDB.
    return sqlstate(error) in {"40001", "40P01"} or _code(error.orig) in {1213, 1020}


def is_lost_connection(error: DBAPIError) -> bool:
    """Tell whether the connection was dead; SQLAlchemy then replaces it, and all that the pool had before."""
    return error.connection_invalidated


def sqlstate(error: StatementError) -> str | None:
    """The five characters that PostgreSQL and its drivers name an error by, or None."""
    original = error.orig
    state = getattr(original, "sqlstate", None) or getattr(original, "pgcode", None)
    return state if isinstance(state, str) else None


def _code(original: BaseException) -> int | None:
    first = original.args[0] if original.args else None
    return first if isinstance(first, int) else None


def _state(error: StatementError) -> str:
    state = sqlstate(error)
    if state is not None:
        return f" {state}"
    code = _code(error.orig) if error.orig is not None else None
    return f" {code}" if code is not None else ""
