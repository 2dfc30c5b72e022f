"""Real database servers for the tests: one each for a whole test run, empty at the start of every test."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from sqlalchemy import MetaData, make_url
from sqlalchemy.ext.asyncio import create_async_engine

from bench.databases import Mariadb, Postgres, Server, installed, short_folder


def postgres() -> AbstractContextManager[str | None]:
    """A PostgreSQL server's URL: the one in ONFILE_TEST_POSTGRES, or of a server from a PyPI package, or None."""
    return _given_or_started("ONFILE_TEST_POSTGRES", "postgresql", Postgres)


def mariadb() -> AbstractContextManager[str | None]:
    """A MariaDB server's URL: the one in ONFILE_TEST_MYSQL, or of a server that Debian installed, or None."""
    # Thousands of commits of which none has to outlive the machine.
    return _given_or_started(
        "ONFILE_TEST_MYSQL", "mariadb", lambda folder: Mariadb(folder, "--innodb-flush-log-at-trx-commit=0")
    )


@contextmanager
def _given_or_started(variable: str, name: str, start: Callable[[Path], Server]) -> Iterator[str | None]:
    given = os.environ.get(variable)
    if given or not list(installed([name])):
        yield given or None
        return
    with short_folder() as folder:
        server = start(folder)
        try:
            yield server.fresh()
        finally:
            server.close()


async def emptied(url: str) -> str:
    """The same URL, once nothing is in its database."""
    engine = create_async_engine(url)
    async with engine.begin() as conn:
        found = MetaData()
        await conn.run_sync(found.reflect)
        await conn.run_sync(found.drop_all)
    await engine.dispose()
    return url


def by_driver(url: str, drivername: str) -> str:
    """The URL for another driver."""
    return make_url(url).set(drivername=drivername).render_as_string(hide_password=False)
