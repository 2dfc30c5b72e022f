"""Running the command: in this process where that is the same, as a process where it is not."""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from onfile.cli import main
from onfile.records import MemoryRecord
from onfile.stores import SqlMemoryProvider, StoredMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test has a home and a directory of its own, and nobody's database."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("ONFILE_DB", raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)  # a width that somebody exported would wrap what is printed
    monkeypatch.delenv("ONFILE_DEBUG", raising=False)
    return tmp_path


@pytest.fixture
def onfile(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ended]:
    """Run one command in this process."""

    def run(*arguments: str, stdin: str | bytes = b"") -> Ended:
        content = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))
        capfd.readouterr()
        code = main(arguments)
        captured = capfd.readouterr()
        return Ended(code=code, out=captured.out, err=captured.err)

    return run


@pytest.fixture
def process() -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """Run one command as a user's shell does."""

    def run(
        *arguments: str, environment: Mapping[str, str] | None = None, stdin: bytes = b""
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "onfile.cli", *arguments],
            input=stdin,
            capture_output=True,
            check=False,
            timeout=60,
            env={**os.environ, **(environment or {})},
        )

    return run


@pytest.fixture
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment where Python keeps what it compiled, as after an ordinary installation and one run."""
    return {"PYTHONPYCACHEPREFIX": str(tmp_path_factory.mktemp("compiled")), "PYTHONDONTWRITEBYTECODE": ""}


@pytest.fixture
def started() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start a command and end it with the test."""
    running: list[subprocess.Popen[bytes]] = []

    def start(*arguments: str) -> subprocess.Popen[bytes]:
        program = [sys.executable, "-m", "onfile.cli", *arguments]
        begun = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        running.append(begun)
        return begun

    yield start
    for begun in running:
        with begun:
            begun.kill()


@pytest.fixture
def on_file(tmp_path: Path) -> Callable[..., str]:
    """Put records into a fresh database and answer its path."""

    def put(*records: MemoryRecord, name: str = "facts.db") -> str:
        path = tmp_path / name

        async def restore(provider: SqlMemoryProvider) -> None:
            await provider.setup()
            await provider.restore([StoredMemory(record=record, created_at=record.updated_at) for record in records])

        asked(str(path), restore)
        return str(path)

    return put


def asked(path: str, ask: Callable[[SqlMemoryProvider], Coroutine[Any, Any, Any]]) -> Any:
    """What the library says about the same database."""

    async def run() -> Any:
        provider = SqlMemoryProvider.from_url(f"sqlite:///{path}")
        try:
            return await ask(provider)
        finally:
            await provider.aclose()

    return asyncio.run(run())


@pytest.fixture
def stored() -> Callable[[str], list[StoredMemory]]:
    """All that a database holds."""

    async def export(provider: SqlMemoryProvider) -> list[StoredMemory]:
        return [memory async for memory in provider.export()]

    return lambda path: asked(path, export)
