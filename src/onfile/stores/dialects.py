"""Which databases onfile speaks to, by which drivers, and how an engine of its own is built."""

from __future__ import annotations

import contextlib
import logging
from functools import partial
from typing import TYPE_CHECKING

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError, InvalidRequestError, NoSuchModuleError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from ..errors import StoreError
from .servers import MysqlDatabase, PostgresDatabase
from .sqlite import BUSY_MS, SqliteDatabase

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

    from .transactions import Database

_ASYNC_DRIVERS = {
    "sqlite": "sqlite+aiosqlite",
    "postgres": "postgresql+asyncpg",
    "postgresql": "postgresql+asyncpg",
    "mysql": "mysql+asyncmy",
    "mariadb": "mariadb+asyncmy",
}
_EXTRAS = {"postgresql": "postgres", "mysql": "mysql", "mariadb": "mysql"}
_INSTALLED_BY_EXTRA = {"postgresql+asyncpg", "postgresql+psycopg", "mysql+asyncmy", "mariadb+asyncmy"}
_LOGGING_NAME = "onfile"


def database_of(engine: object, *, row_level_security: bool = False, owner: str = "SqlMemoryProvider") -> Database:
    """Answer how to work with the engine's database.

    Args:
        engine: SQLAlchemy's, of whatever driver.
        row_level_security: Tell the database, in every transaction, which scopes it is about.
        owner: Who was given the engine, for the error's words.

    Raises:
        TypeError: It is not an async engine, or one of a database that onfile does not know.
        ValueError: Row-level security on a database that has none.
    """
    if not isinstance(engine, AsyncEngine):
        msg = (
            f"{owner} takes an AsyncEngine, not {type(engine).__name__}; build one with "
            "sqlalchemy.ext.asyncio.create_async_engine, or "
            + ("call SqlMemoryProvider.from_url(url)" if owner == "SqlMemoryProvider" else "give it provider.engine")
        )
        raise TypeError(msg)
    if engine.dialect.name == "postgresql":
        return PostgresDatabase(engine, row_level_security=row_level_security)
    if row_level_security:
        msg = f"row-level security is PostgreSQL's, and this is {engine.dialect.name}; leave row_level_security out"
        raise ValueError(msg)
    if engine.dialect.name == "sqlite":
        return SqliteDatabase(engine)
    if engine.dialect.name in ("mysql", "mariadb"):
        return MysqlDatabase(engine)
    msg = f"onfile keeps facts in SQLite, PostgreSQL, MySQL and MariaDB, not in {engine.dialect.name}"
    raise TypeError(msg)


def build_engine(url: str | URL) -> AsyncEngine:
    """Build an engine that logs no parameter and no row, whatever the log level.

    Raises:
        StoreError: The URL names no database, none that is known, or a driver that is not installed.
    """
    parsed = _async_url(url)
    _quieten()
    arguments = {"timeout": BUSY_MS / 1000} if parsed.get_backend_name() == "sqlite" else {}
    failure: str
    try:
        return create_async_engine(
            parsed,
            hide_parameters=True,
            logging_name=_LOGGING_NAME,
            pool_logging_name=_LOGGING_NAME,
            connect_args=arguments,
        )
    except ModuleNotFoundError:
        extra = _EXTRAS.get(parsed.get_backend_name())
        if parsed.drivername in _INSTALLED_BY_EXTRA:
            failure = f"the driver {parsed.drivername} is not installed: pip install 'onfile[{extra}]'"
        else:
            failure = f"the driver {parsed.drivername} is not installed" + (
                f"; leave the driver out of the URL, and onfile picks the one that 'onfile[{extra}]' installs"
                if extra
                else ""
            )
    except NoSuchModuleError:
        failure = f"there is no database driver called {parsed.drivername}"
    except InvalidRequestError:
        failure = f"{parsed.drivername} is no async driver; leave the driver out of the URL and onfile picks one"
    raise StoreError(failure)


def _async_url(url: str | URL) -> URL:
    parsed: URL | None = None
    with contextlib.suppress(ArgumentError, ValueError):
        parsed = make_url(url)
    if parsed is None:
        # Without the URL: it may hold a password.
        msg = "that is no database URL; write one such as sqlite:///onfile.db or postgresql://user@host/name"
        raise StoreError(msg)
    return parsed.set(drivername=_ASYNC_DRIVERS.get(parsed.drivername, parsed.drivername))


def _quieten() -> None:
    """Keep facts out of the logs of our own engines and of the drivers beneath them.

    By filters, not by levels: a host that turns every logger to DEBUG must not turn facts on.
    """
    # SQLAlchemy hides parameters when told to, but logs every fetched row at DEBUG.
    _filter_once(logging.getLogger(f"sqlalchemy.engine.Engine.{_LOGGING_NAME}"), _drop_rows)
    # aiosqlite logs each call with its arguments, the statement's parameters among them.
    _filter_once(logging.getLogger("aiosqlite"), _name_calls_only)
    # asyncmy logs a server's warnings and, with echo, statements with their values in them.
    _filter_once(logging.getLogger("asyncmy"), _withhold)


def _filter_once(target: logging.Logger, rule: logging._FilterType) -> None:  # pyright: ignore[reportPrivateUsage]  # the stub's only name for it
    if rule not in target.filters:
        target.addFilter(rule)


def _drop_rows(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith("Row ")


def _withhold(record: logging.LogRecord) -> bool:
    record.msg, record.args = "withheld: a message that may quote a value", None
    return True


def _name_calls_only(record: logging.LogRecord) -> bool:
    if isinstance(record.args, tuple):
        record.args = tuple(
            getattr(argument.func, "__name__", "a call") if isinstance(argument, partial) else type(argument).__name__
            for argument in record.args
        )
    return True
