"""Opening the database that a command works on, and saying in words when that fails."""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import OnfileError
from .failures import Failure

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine

    from sqlalchemy.engine import URL
    from sqlalchemy.ext.asyncio import AsyncEngine

    from ..recall import Embedder
    from ..stores import SqlMemoryProvider

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a database is."""

    url: URL
    file: Path | None
    """The file of a SQLite database."""
    default: bool
    """Nobody named it: it is the file in the data directory."""

    def __str__(self) -> str:
        """Name it for a person, without the password."""
        if self.file is not None:
            return str(self.file)
        where = f"{self.url.host or 'localhost'}:{self.url.port}" if self.url.port else self.url.host or "localhost"
        return f"{self.url.get_backend_name()}://{where}/{self.url.database or ''}"


def place_of(given: str) -> Place:
    """Answer where the database is that a person named: a URL, a path, or "" for the default file."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    if not given:
        return _sqlite(_default_file(), default=True)
    if "://" not in given:
        return _sqlite(Path(given).expanduser(), default=False)
    url: URL | None = None
    with suppress(ArgumentError, ValueError):
        url = make_url(given)
    if url is None:
        # Without the URL: it may hold a password.
        msg = "that is no database URL; write one such as sqlite:///onfile.db or postgresql://user@host/name"
        raise Failure(msg)
    named = url.database or ""
    plain = url.get_backend_name() == "sqlite" and named not in {"", ":memory:"} and not named.startswith("file:")
    return Place(url=url, file=Path(named) if plain else None, default=False)


@asynccontextmanager
async def opened(
    given: str, *, make: bool = False, embedder: Embedder | None = None
) -> AsyncGenerator[SqlMemoryProvider]:
    """Open the database with its tables in place, and close it whatever happens.

    Args:
        given: A URL, a path, or "" for the default file.
        make: The command may start a new SQLite file.
        embedder: What turns texts into vectors, for commands that need it.

    Raises:
        Failure: It cannot be opened.
    """
    async with reached(given, make=make, embedder=embedder) as provider:
        await _in_words(provider.setup(), place_of(given))
        yield provider


@asynccontextmanager
async def reached(
    given: str, *, make: bool = False, embedder: Embedder | None = None
) -> AsyncGenerator[SqlMemoryProvider]:
    """Connect to the database as it stands, and close it whatever happens.

    Args:
        given: A URL, a path, or "" for the default file.
        make: The command may start a new SQLite file. Where it may not, a mistyped path is told
            as such instead of answered from an empty file.
        embedder: What turns texts into vectors, for commands that need it.

    Raises:
        Failure: It cannot be opened.
    """
    place = place_of(given)
    if place.file is not None and not place.default and not make and not place.file.exists():
        msg = f"there is no database at {place}; 'onfile import' and 'onfile publish' make one"
        raise Failure(msg)
    from ..stores import SqlMemoryProvider
    from ..stores.dialects import build_engine, database_of

    engine = build_engine(place.url)
    try:
        try:
            database_of(engine)
        except TypeError as error:
            # A database that SQLAlchemy knows and onfile does not; the words name its kind and nothing else.
            raise Failure(str(error)) from None
        held = await _in_words(_is_held(engine), place)
        provider = SqlMemoryProvider(engine, embedder, row_level_security=held)
        try:
            yield provider
        finally:
            await provider.aclose()
    finally:
        await engine.dispose()
        await _driver_threads_ended()


async def _is_held(engine: AsyncEngine) -> bool:
    """Connect, and answer whether row-level security holds this role: then the operator's acts must ask for more."""
    from ..stores.row_security import row_security_of

    async with engine.connect() as conn:
        if engine.dialect.name == "sqlite":
            # SQLite looks into a file only when it is asked for something in it.
            await conn.exec_driver_sql("PRAGMA schema_version")
        return (await row_security_of(conn)).held


async def _in_words(step: Coroutine[Any, Any, T], place: Place) -> T:
    why: str
    try:
        return await step
    except OnfileError:
        raise
    except Exception as error:  # noqa: BLE001  # each driver has its own; all mean that the database cannot be used
        why = why_unusable(error)
    # Raised out here: the driver's error may quote the URL and its password.
    msg = f"the database {place} cannot be used: {why}"
    raise Failure(msg)


async def _driver_threads_ended() -> None:
    """Wait for the driver's threads, which a connection that failed to open leaves behind for a moment.

    aiosqlite does not wait for them itself; one that outlives the event loop prints a traceback.
    """
    for thread in threading.enumerate():
        if "_connection_worker_thread" in thread.name:
            await asyncio.to_thread(thread.join, 1)


_SAID = {
    "unable to open database file": "it or its folder does not exist, or may not be read and written",
    "file is not a database": "that file is no SQLite database",
    "disk image is malformed": "the file is damaged; put a back-up in its place",
    "is locked": "another process keeps it locked; look for one that keeps a transaction open",
    "readonly database": "the file may not be written to",
    "password authentication failed": "it refuses the user or the password",
    "no password supplied": "it asks for a password",
    "access denied": "it refuses the user or the password",
    "unknown database": "the server has no database of that name",
    "does not exist": "the server has no such database or user",
    "connection refused": "nothing answers there; is the server running?",
    "connect call failed": "nothing answers there; is the server running?",
    "can't connect": "nothing answers there; is the server running?",
    "name or service not known": "there is no such host",
    "nodename nor servname": "there is no such host",
    "timeout": "it did not answer in time",
    "timed out": "it did not answer in time",
}


def why_unusable(error: BaseException) -> str:
    """Recognise what drivers say, in our words: theirs may hold the URL and quote rows."""
    chain: list[BaseException] = []
    step: BaseException | None = error
    while step is not None and step not in chain:
        chain.append(step)
        step = getattr(step, "orig", None) or step.__cause__ or step.__context__
    said = " ".join(f"{type(link).__name__} {link}" for link in chain).casefold()
    for words, meaning in _SAID.items():
        if words in said:
            return meaning
    return f"the driver raised {type(chain[-1]).__name__}"


def _default_file() -> Path:
    from platformdirs import user_data_path

    folder = user_data_path("onfile", appauthor=False)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / "onfile.db"


def _sqlite(file: Path, *, default: bool) -> Place:
    from sqlalchemy.engine import URL

    return Place(url=URL.create("sqlite+aiosqlite", database=str(file)), file=file, default=default)
