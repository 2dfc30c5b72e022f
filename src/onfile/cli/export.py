"""`onfile export`: an operator's back-up, which an import puts back exactly."""

import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NoReturn, TextIO

import typer

from .failures import Failure
from .loop import finish
from .options import AtScopes, Database, named_actor
from .output import counted, note


def export_facts(
    scope: AtScopes = None,
    actor: Annotated[
        str | None,
        typer.Option(
            "--actor",
            metavar="ID",
            help="Only what is held at this person's own scope, for their request.",
            callback=named_actor,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write to this file instead of standard output."),
    ] = None,
    db: Database = "",
) -> None:
    """Write facts as JSON Lines, ordered by scope and key, for 'onfile import' to put back exactly.

    Example: [bold]onfile export --scope tenant:acme --out acme.jsonl[/]
    """
    if actor is not None:
        if scope:
            msg = "--scope and --actor contradict each other; choose one"
            raise Failure(msg)
        scope = [_own_scope(actor)]
    if out is None:
        if not finish(_export(db, scope, sys.stdout)):
            note("nothing is on file there" if scope else "nothing is on file yet")
        return
    with _replacing(out) as stream:
        written = finish(_export(db, scope, stream))
    note(f"{counted(written, 'fact')} written to {out}")


@contextmanager
def _replacing(out: Path) -> Generator[TextIO]:
    """Write beside a file and then in its place: an export that breaks off leaves the last one whole."""
    if out.is_dir():
        msg = f"{out} is a folder; name a file in it"
        raise Failure(msg)
    # A pipe or a terminal is written to as it is; what a link leads to is replaced, not the link.
    special = out.exists() and not out.is_file()
    target = out if special else out.resolve()
    # Two exports to one file at once must not write into each other's.
    part = target if special else target.with_name(f"{target.name}.{os.getpid()}.part")
    # Told to end, it must not leave somebody's facts in a file that nobody looks for.
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        with _opened(part, out) as stream:
            yield stream
        if not special:
            part.replace(target)
    finally:
        if not special:
            part.unlink(missing_ok=True)
        signal.signal(signal.SIGTERM, before)


def _opened(part: Path, out: Path) -> TextIO:
    try:
        return part.open("w", encoding="utf-8", newline="\n")
    except OSError as error:
        msg = f"{out} cannot be written: {(error.strerror or 'no such file').lower()}"
        raise Failure(msg) from None


def _interrupt(signum: int, frame: object) -> NoReturn:  # noqa: ARG001  # the signature of a signal handler
    raise KeyboardInterrupt


def _own_scope(actor: str) -> str:
    from ..records import Actor
    from ..scopes import actor_scope

    return actor_scope(Actor(id=actor))


async def _export(db: str, scopes: list[str] | None, stream: TextIO) -> int:
    from ..wire.lines import dump_line
    from .database import opened

    written = 0
    async with opened(db) as provider:
        async for memory in provider.export(scopes=scopes):
            line = dump_line(memory.record, created_at=memory.created_at, expires_at=memory.expires_at)
            stream.write(f"{line}\n")
            written += 1
    stream.flush()
    return written
