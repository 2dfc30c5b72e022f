"""`onfile import`: an operator's restore, exact and all or nothing."""

import os
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal, TextIO, cast

import typer

from .embedders import EmbedderName, embed_missing, embedder_named
from .export import export_facts
from .failures import Failure
from .loop import finish
from .options import AsJson, Database, explained
from .output import console, counted, note, write_json

if TYPE_CHECKING:
    from rich.progress import Progress

    from ..recall import Embedder
    from ..stores import RestoreReport, SqlMemoryProvider
    from ..wire.lines import BadLine, FactLine

LONG_FACT, LONG_KEY = 240, 64
"""What `Memory` allows by default: longer ones are kept, but a person could not write them again."""
_NAMED = 20
_BAD_SHOWN = 100
_BOM = b"\xef\xbb\xbf"


def add_to(application: typer.Typer) -> None:
    """Add the commands of this module."""
    application.command("import", help=explained(import_facts), rich_help_panel="Facts in and out")(import_facts)
    application.command("export", help=explained(export_facts), rich_help_panel="Facts in and out")(export_facts)


@dataclass(slots=True, kw_only=True)
class _Reading:
    """What a file came to: the good lines with their numbers, and the bad ones."""

    good: "list[tuple[int, FactLine]]"
    bad: "list[BadLine]"


@dataclass(slots=True, kw_only=True)
class _Kept:
    """What became of the good lines, and of their vectors."""

    report: "RestoreReport"
    embedded: int = 0
    without_vector: int = 0
    """How many facts are found by words alone where others have a vector."""
    failed: str = ""
    """Why the embedder gave up, the facts being on file."""


def import_facts(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="A file of JSON Lines, or - for standard input.", show_default=False),
    ],
    *,
    keep_going: Annotated[
        bool,
        typer.Option("--keep-going", help="Import the good lines although others are bad; the exit code is then 1."),
    ] = False,
    skip: Annotated[
        bool, typer.Option("--skip", help="Where the id, or the scope and key, is on file already: keep what stands.")
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Where the id, or the scope and key, is on file already: the line wins.")
    ] = False,
    embedder: EmbedderName = None,
    as_json: AsJson = False,
    db: Database = "",
) -> None:
    """Put facts on file from JSON Lines, all of them or none.

    A line is an object such as {"scope": "actor:ana", "key": "units", "text": "miles", "author": "human"}, whose author
    is "human" or "agent". It may add pinned, id, updated_at, created_at, expires_at and origin (thread_id, run_id,
    actor_ref), as 'onfile export' writes them; a time has a time zone.

    This is an operator's restore: nobody's authority is asked, and what the lines say is kept exactly. A fact that is
    on file already stops it, unless --skip or --replace says which one stands.

    With --embedder, facts get their vectors at once; otherwise 'onfile reindex' makes them later.

    Example: [bold]onfile import facts.jsonl --skip[/]
    """
    if skip and replace:
        msg = "--skip and --replace contradict each other; choose one"
        raise Failure(msg)
    made = embedder_named(embedder)
    with progress_bar() as progress:
        reading = _read(file, progress)
        if not skip and not replace:
            _refuse_repeated(reading.good)
        kept: _Kept | None = None
        if not reading.bad or keep_going:
            progress.add_task(f"Keeping {counted(len(reading.good), 'fact')}", total=None)
            on_conflict = "skip" if skip else "replace" if replace else "stop"
            kept = finish(_restore(db, reading.good, on_conflict, made, progress))
    _tell(reading, kept, as_json=as_json)
    if kept is not None and kept.failed:
        raise typer.Exit(1)
    if reading.bad:
        raise typer.Exit(1 if keep_going else 2)


def _read(file: str, progress: "Progress") -> _Reading:
    from ..wire.lines import BadLine, LineRefused, parse_line

    reading = _Reading(good=[], bad=[])
    with _opened(file) as (stream, size):
        task = progress.add_task("Reading", total=size)
        for number, line in enumerate(stream, start=1):
            progress.advance(task, len(line))
            content = line.removeprefix(_BOM) if number == 1 else line
            if not content.strip():
                continue
            if not reading.good and not reading.bad:
                _refuse_other_formats(content)
            try:
                reading.good.append((number, parse_line(content)))
            except LineRefused as refused:
                reading.bad.append(BadLine(line=number, reason=str(refused)))
    return reading


def _refuse_other_formats(beginning: bytes) -> None:
    """Say what a file is that is no JSON Lines, instead of naming each of its lines."""
    if beginning.startswith((b"\xff\xfe", b"\xfe\xff")):
        msg = "the file is UTF-16; save it as UTF-8"
        raise Failure(msg)
    start = b"".join(beginning.split())[:2]
    if start in {b"[", b"[{"}:
        msg = "the file is one JSON array; an import reads one object a line, as jq -c '.[]' FILE prints it"
        raise Failure(msg)
    if start == b"{":
        msg = "the file is JSON over several lines; an import reads one object a line, as jq -c . FILE prints it"
        raise Failure(msg)


@contextmanager
def _opened(file: str) -> "Generator[tuple[BinaryIO, int | None]]":
    if file == "-":
        stdin = cast("TextIO | None", sys.stdin)
        if stdin is None:
            msg = "standard input is closed; name a file, or send the lines through a pipe"
            raise Failure(msg)
        yield stdin.buffer, None
        return
    try:
        stream = Path(file).open("rb")  # noqa: SIM115  # closed below; only the opening is guarded here
    except OSError as error:
        msg = f"{file} cannot be read: {(error.strerror or 'no such file').lower()}"
        raise Failure(msg) from None
    with stream:
        yield stream, os.fstat(stream.fileno()).st_size


def _refuse_repeated(lines: "Iterable[tuple[int, FactLine]]") -> None:
    """Stop at facts that one file holds twice, naming both lines: which is right is not ours to guess."""
    first: dict[object, int] = {}
    repeated: list[str] = []
    for number, line in lines:
        earlier = {first[mark] for mark in (line.id, line.identity) if mark is not None and mark in first}
        if earlier:
            repeated.append(f"line {number} repeats line {min(earlier)}")
        for mark in (line.id, line.identity):
            if mark is not None:
                first.setdefault(mark, number)
    if repeated:
        msg = (
            f"the file gives the same id, or the same scope and key, more than once, so nothing was imported: "
            f"{_listed(repeated)}. Choose --skip to keep the first or --replace to keep the last"
        )
        raise Failure(msg)


async def _restore(
    db: str,
    lines: "list[tuple[int, FactLine]]",
    on_conflict: Literal["stop", "skip", "replace"],
    embedder: "Embedder | None",
    progress: "Progress",
) -> _Kept:
    from sqlalchemy.exc import SQLAlchemyError

    from ..errors import OnfileError
    from ..ids import new_id
    from ..stores import RestoreConflict, StoredMemory
    from .database import opened

    now = datetime.now(UTC)
    memories: list[StoredMemory] = []
    for _, line in lines:
        record = line.to_record(new_id=line.id or new_id(), now=now)
        created_at = line.created_at or record.updated_at
        memories.append(StoredMemory(record=record, created_at=created_at, expires_at=line.expires_at))
    async with opened(db, make=True, embedder=embedder) as provider:
        try:
            kept = _Kept(report=await provider.restore(memories, on_conflict=on_conflict))
        except RestoreConflict as conflict:
            numbers = [str(lines[position][0]) for position in conflict.positions]
            msg = (
                f"{counted(len(numbers), 'fact')} of the file {'is' if len(numbers) == 1 else 'are'} on file already, "
                f"by id or by scope and key, so nothing was imported: {'line' if len(numbers) == 1 else 'lines'} "
                f"{_listed(numbers)}. Choose --skip to keep what stands or --replace to overwrite it"
            )
            raise Failure(msg) from None
        if embedder is None:
            # The import is done, whatever becomes of the count.
            with suppress(OnfileError, SQLAlchemyError):
                kept.without_vector = await _without_vector(provider)
            return kept
        try:
            kept.embedded = await embed_missing(provider, progress)
        except OnfileError as error:
            # The import is done and stays so: what is missing can be made at any time.
            kept.failed = str(error).replace("call reindex", "run 'onfile reindex'")
        return kept


async def _without_vector(provider: "SqlMemoryProvider") -> int:
    """Count the facts without a vector where vectors are used at all."""
    from ..stores.health import health_of

    now = datetime.now(UTC)
    health = await health_of(
        provider.engine, now=now, receipts_before=now, max_fact=LONG_FACT, max_key=LONG_KEY, max_memories=1
    )
    return health.without_vector if health.vectors else 0


def _tell(reading: _Reading, kept: _Kept | None, *, as_json: bool) -> None:
    report = kept.report if kept else None
    long_facts = [number for number, line in reading.good if len(line.text) > LONG_FACT]
    long_keys = [number for number, line in reading.good if len(line.key) > LONG_KEY]
    if as_json:
        write_json(
            {
                "inserted": report.inserted if report else 0,
                "replaced": report.replaced if report else 0,
                "skipped": report.skipped if report else 0,
                "bad": [{"line": bad.line, "reason": bad.reason} for bad in reading.bad],
                "long_facts": long_facts,
                "long_keys": long_keys,
                "embedded": kept.embedded if kept else 0,
                "without_vector": kept.without_vector if kept else 0,
            }
        )
    for bad in reading.bad[:_BAD_SHOWN]:
        note(f"line {bad.line}: {bad.reason}")
    if len(reading.bad) > _BAD_SHOWN:
        note(f"and {counted(len(reading.bad) - _BAD_SHOWN, 'bad line')} more; --json lists them all")
    for lines, what, most in ((long_facts, "fact", LONG_FACT), (long_keys, "key", LONG_KEY)):
        if lines and report:
            note(
                f"note: {counted(len(lines), what)} longer than {most} characters, "
                f"the most that a model or a person may write: {_lines(lines)}"
            )
    if kept is None:
        note(f"onfile: {counted(len(reading.bad), 'bad line')}, so nothing was imported; --keep-going takes the others")
        return
    note(_summary(reading, kept))
    if kept.failed:
        note(f"onfile: the facts are on file without vectors: {kept.failed}")
    elif kept.without_vector:
        note(
            f"note: {counted(kept.without_vector, 'fact')} on file without a vector, found by words alone; "
            "'onfile reindex --embedder MODULE:NAME' makes them"
        )


def _summary(reading: _Reading, kept: _Kept) -> str:
    report = kept.report
    parts = [f"{counted(report.inserted, 'fact')} imported"]
    parts += [f"{report.replaced:,} replaced"] if report.replaced else []
    parts += [f"{report.skipped:,} skipped as on file already"] if report.skipped else []
    parts += [f"{counted(len(reading.bad), 'bad line')} left out"] if reading.bad else []
    parts += [f"{kept.embedded:,} given a vector"] if kept.embedded else []
    return ", ".join(parts)


def _lines(numbers: list[int]) -> str:
    return f"{'line' if len(numbers) == 1 else 'lines'} {_listed([str(number) for number in numbers])}"


def _listed(names: list[str]) -> str:
    """List names for a sentence; of very many, the first and how many more."""
    if len(names) > _NAMED:
        return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED:,} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


@contextmanager
def progress_bar() -> "Generator[Progress]":
    """Show a bar to a person at a terminal, and nothing to anything else."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    shown = sys.stderr.isatty()
    progress = Progress(*columns, console=console(errors=True), transient=True, disable=not shown)
    # Never started where nobody looks: some versions end even a disabled bar with a line break.
    with progress if shown else nullcontext():
        yield progress
