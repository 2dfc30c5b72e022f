"""SQLite: writers that take the lock first, and deletions that reach the bytes in every file."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import random
import time
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import StaticPool

from .crowd import Crowd
from .failures import is_locked, locked, spoken
from .gaps import fill
from .in_one_go import OUTSIDE, READ_PRAGMAS, begin_script, can_go, go, put_back_script
from .managed import managed_tables
from .steps import carry_out
from .transactions import Transaction

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence

    from sqlalchemy import Engine, Executable, MetaData
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from .steps import Steps
    from .transactions import Scopes

T = TypeVar("T")
logger = logging.getLogger(__name__)

# More would only wait for the interpreter: the database is in this process.
_READS_AT_ONCE = 4
BUSY_MS = 30_000
"""How long a writer waits for another process."""
_SLICE_MS = 500
# A checkpoint that waits for readers keeps writers out: a short wait where a fact was just deleted,
# hardly any where a text was replaced or in the background, where there is always a next time.
_CHECKPOINT_MS = 100
_BACKGROUND_CHECKPOINT_MS = 10
_FIRST_RETRY_SECONDS = 0.1
_LAST_RETRY_SECONDS = 1.0
_SETTLE_SECONDS = 2.0

# A file of this size is written anew in a tenth of a second or two; a larger one is left to `onfile db vacuum`.
_REWRITTEN_BYTES = 16 * 1024 * 1024

_READ_FILE = (
    "SELECT (SELECT page_count FROM pragma_page_count) * (SELECT page_size FROM pragma_page_size),"
    " (SELECT json_group_array(name) FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite_*'),"
    " (SELECT count(*) FROM sqlite_temp_master)"
)
# One per engine, not per provider: two providers on one engine share its connections.
_turns: WeakKeyDictionary[Engine, asyncio.Lock] = WeakKeyDictionary()


class SqliteDatabase:
    """One SQLite database behind a caller's engine, which is used as it is: no listeners, no lasting pragmas.

    The writers of one process take turns here, where waiting costs no connection and no thread;
    those of several processes wait for SQLite's own lock.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._turn = _turns.setdefault(engine.sync_engine, asyncio.Lock())
        # An in-memory database is one connection, or several on one cache, which do not wait for
        # each other: readers take turns too.
        self._alone = isinstance(engine.pool, StaticPool) or _in_memory(engine)
        self._crowd = Crowd(_READS_AT_ONCE)
        self._cleaning: asyncio.Task[None] | None = None
        self._unclean = False
        self._stale = False

    async def read(self, work: Callable[[AsyncConnection], Awaitable[T]], *, scopes: Scopes = ()) -> T:
        """Run the work on a connection of its own and hand the connection back."""
        del scopes  # whoever may read the file may read all of it
        async with self._turn if self._alone else self._crowd.door():
            return await _to_its_end(spoken(self._read(work)))

    async def _read(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        async with self._engine.connect() as conn:
            return await work(conn)

    async def transact(self, work: Callable[[Transaction], Awaitable[T]], *, scopes: Scopes = ()) -> T:
        """Run the work under the database's write lock, taken before anything is read."""
        del scopes
        async with self._turn:
            caller = _Caller()
            return await _to_its_end(spoken(self._transact(work, caller)), caller)

    async def _transact(self, work: Callable[[Transaction], Awaitable[T]], caller: _Caller) -> T:
        async with self._engine.connect() as conn:
            begun = await conn.begin()
            driver = await _driver(conn)
            async with _pragmas_put_back(driver):
                transaction = Transaction(conn=conn)
                try:
                    await self._begin(driver, caller)
                    result = await work(transaction)
                    await begun.commit()
                except BaseException:
                    # On the driver itself: an AUTOCOMMIT engine may be told not to roll back.
                    if transaction.removed_text:
                        self._stale |= transaction.deleted_fact
                        self._clean_later()  # the commit may have gone through all the same
                    with contextlib.suppress(Exception):
                        await driver.rollback()
                    raise
                if transaction.removed_text:
                    self._stale |= transaction.deleted_fact
                    await self._clean(driver)
                return result

    @property
    def one_trip(self) -> bool:
        """Whether one statement can do here what takes several elsewhere."""
        return False

    async def change_at_once(
        self, statement: Executable, values: Mapping[str, Any], *, scopes: Scopes = ()
    ) -> Sequence[Sequence[Any]] | None:
        """Leave it to a transaction."""
        del statement, values, scopes
        return None

    async def play(self, steps: Callable[[], Steps[T]], *, scopes: Scopes = ()) -> T:
        """Run the steps under the database's write lock, in one go."""
        del scopes
        async with self._turn:
            caller = _Caller()
            return await _to_its_end(spoken(self._play(steps, caller)), caller)

    async def _play(self, steps: Callable[[], Steps[T]], caller: _Caller) -> T:
        async with self._engine.connect() as conn:
            driver = await _driver(conn)
            if can_go(driver):
                return await self._go(driver, steps, caller)
        return await self._transact(lambda transaction: carry_out(transaction, steps()), caller)

    async def _go(self, driver: Any, steps: Callable[[], Steps[T]], caller: _Caller) -> T:
        deadline = time.monotonic() + BUSY_MS / 1000
        while (outcome := await go(driver, self._engine.dialect, steps, busy_ms=_SLICE_MS)).locked:
            if time.monotonic() > deadline:
                raise locked()
            if caller.is_gone:
                raise asyncio.CancelledError
        if outcome.removed_text:
            if self._unclean:
                self._clean_later()  # readers are in the way, and it is being seen to already
            else:
                async with _pragmas_put_back(driver):
                    await self._clean(driver, busy_ms=_BACKGROUND_CHECKPOINT_MS)
        return outcome.unwrap()

    async def _begin(self, driver: Any, caller: _Caller) -> None:
        """Wait for the database's write lock, in slices, as long as the caller does."""
        deadline = time.monotonic() + BUSY_MS / 1000
        while True:
            try:
                await _run(driver, begin_script(_SLICE_MS))
            except self._driver_error() as error:
                if not is_locked(error):
                    raise
                if time.monotonic() > deadline:
                    raise locked() from None
            else:
                return
            if caller.is_gone:
                raise asyncio.CancelledError

    async def create(self, metadata: MetaData) -> None:
        """Switch to a write-ahead log and make what is missing of the tables."""
        async with self._turn:
            await _to_its_end(spoken(self._write_ahead()))

        async def make(transaction: Transaction) -> None:
            await transaction.conn.run_sync(fill, metadata)

        await self.transact(make)
        # What a process that died left in the log.
        self._unclean = True
        await self.settle()

    async def _write_ahead(self) -> None:
        deadline = time.monotonic() + BUSY_MS / 1000
        while True:
            try:
                async with self._engine.connect() as conn:
                    driver = await _driver(conn)
                    await _outside(driver, "PRAGMA journal_mode=WAL", reopened=driver.in_transaction)
                    return
            except (OperationalError, self._driver_error()) as error:
                # Two connections that both ask for this fail at once instead of waiting.
                if not is_locked(error):
                    raise
                if time.monotonic() > deadline:
                    raise locked() from None
            await asyncio.sleep(0.01 + 0.05 * random.random())  # noqa: S311  # spreads retries, guards nothing

    def _driver_error(self) -> type[Exception]:
        return self._engine.dialect.loaded_dbapi.Error

    async def settle(self) -> None:
        """Wait until deleted text has left the log, for two seconds at most."""
        task = self._cleaning
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        deadline = time.monotonic() + _SETTLE_SECONDS
        while self._unclean:
            await self._try_to_clean()
            if not self._unclean or time.monotonic() > deadline:
                return
            await asyncio.sleep(_FIRST_RETRY_SECONDS)

    async def _clean(self, driver: Any, *, busy_ms: int = _CHECKPOINT_MS) -> None:
        """Empty the log on a connection that has just committed; else see to it in the background."""
        self._unclean = True
        try:
            await _run(driver, f"PRAGMA busy_timeout={busy_ms}")
            await self._empty(driver)
        except self._driver_error() as error:
            if not is_locked(error):
                raise
        finally:
            if self._unclean:
                self._clean_later()

    def _clean_later(self) -> None:
        self._unclean = True
        if self._cleaning is None or self._cleaning.done():
            self._cleaning = asyncio.get_running_loop().create_task(self._keep_cleaning(), name="onfile: empty the log")

    async def _keep_cleaning(self) -> None:
        pause = _FIRST_RETRY_SECONDS
        while self._unclean:
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LAST_RETRY_SECONDS)
            with contextlib.suppress(Exception):  # a database that is away is asked again
                await self._try_to_clean()

    async def _try_to_clean(self) -> None:
        async with self._turn, self._engine.connect() as conn:
            driver = await _driver(conn)
            async with _pragmas_put_back(driver):
                await _run(driver, f"PRAGMA busy_timeout={_BACKGROUND_CHECKPOINT_MS}")
                with contextlib.suppress(self._driver_error()):
                    await self._empty(driver)

    async def _empty(self, driver: Any) -> None:
        """Write the file anew if a fact was deleted from it, then empty the log, as far as others let us."""
        if self._stale:
            try:
                await _rewrite(driver)
                self._stale = False
            except self._driver_error() as error:
                # The fact is deleted, so that nothing may fail any more; a full disk stays full.
                if not is_locked(error):
                    self._stale = False
                    logger.warning("the file was not written anew (%s); run `onfile db vacuum`", type(error).__name__)
        [(busy, *_)] = await _rows(driver, "PRAGMA wal_checkpoint(TRUNCATE)")
        self._unclean = self._stale or bool(busy)


@contextlib.asynccontextmanager
async def _pragmas_put_back(driver: Any) -> AsyncGenerator[None]:
    """Give the connection back with the pragmas that its owner had set."""
    was_open, failed = driver.in_transaction, True
    [pragmas] = await _rows(driver, READ_PRAGMAS)
    try:
        yield
        failed = False
    finally:
        with contextlib.suppress(Exception):  # a connection that is gone has nothing to put back
            await _outside(
                driver,
                put_back_script(pragmas),
                # A connection that is still, or again, in a transaction after a commit is one that
                # always is (PEP 249, since Python 3.12), and whose driver counts on that.
                reopened=was_open if failed else driver.in_transaction,
            )


async def _driver(conn: AsyncConnection) -> Any:
    return (await conn.get_raw_connection()).driver_connection


async def _outside(driver: Any, script: str, *, reopened: bool) -> None:
    """Run a script outside any transaction: foreign_keys and journal_mode change nowhere else."""
    try:
        await _run(driver, f"{OUTSIDE} {script}")
    finally:
        if reopened:
            await _run(driver, "BEGIN")


async def _rewrite(driver: Any) -> None:
    """Leave nothing of a deleted fact in the file, where the file is onfile's own and small enough.

    When SQLite spreads a page's rows over other pages it leaves copies behind, in bytes that belong to
    no row, and `secure_delete` does not find those when the row is deleted. Only a new file is free of them.
    """
    [(size, tables, temporary)] = await _rows(driver, _READ_FILE)
    if size > _REWRITTEN_BYTES or not set(json.loads(tables)) <= {*managed_tables()}:
        return  # a host's own tables may count on row numbers, which a new file may change
    # In memory, so that no fact is written to a temporary file; but to switch would drop temporary tables.
    [(store,)] = await _rows(driver, "PRAGMA temp_store")
    was_open = driver.in_transaction
    try:
        await _outside(driver, "VACUUM" if temporary else "PRAGMA temp_store=MEMORY; VACUUM", reopened=was_open)
    finally:
        if not temporary:
            await _outside(driver, f"PRAGMA temp_store={store}", reopened=was_open)


async def _run(driver: Any, script: str) -> None:
    cursor = await driver.executescript(script)
    await cursor.close()


async def _rows(driver: Any, sql: str) -> list[tuple[Any, ...]]:
    return list(await driver.execute_fetchall(sql))


class _Caller:
    """Whoever waits for a transaction, or was cancelled meanwhile."""

    is_gone = False


async def _to_its_end(work: Coroutine[Any, Any, T], caller: _Caller | None = None) -> T:
    """Run the work so that a cancellation waits for its end instead of breaking it off.

    A statement runs in a thread that nothing can break off. Were the waiting for it broken off,
    SQLAlchemy would close the connection under a cursor that still stands in its rows, and SQLite
    keeps such a connection, and the lock or the snapshot it holds, until the cursor is collected.
    """
    caller = caller or _Caller()
    task = asyncio.ensure_future(work)
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            caller.is_gone = True
    if caller.is_gone:
        if not task.cancelled():
            task.exception()  # looked at, or asyncio would log that nobody did
        raise asyncio.CancelledError
    return task.result()


def _in_memory(engine: AsyncEngine) -> bool:
    url = engine.url
    name = url.database or ":memory:"
    return ":memory:" in name or "mode=memory" in name or url.query.get("mode") == "memory"
