"""`onfile db`: the schema's version, the database's state, and what an operator does about either."""

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from .doctor import doctor, of_revision, without
from .failures import Failure
from .loop import finish
from .options import AsJson, Database, explained
from .output import counted, note, write, write_json
from .rls import rls
from .vectors import hnsw

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from ..stores import SqlMemoryProvider, SweepReport
    from ..stores.migrate import SchemaState


Full = Annotated[
    bool,
    typer.Option(
        "--full",
        help="On PostgreSQL, write the tables anew, so that no byte of what was deleted stays in their files; "
        "nobody can use them meanwhile. Example: onfile db vacuum --full",
    ),
]


def add_to(application: typer.Typer) -> None:
    """Add the commands of this module."""
    commands = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")
    for name, command in (
        ("upgrade", upgrade),
        ("current", current),
        ("check", check),
        ("sql", sql),
        ("doctor", doctor),
        ("vacuum", vacuum),
        ("sweep", sweep),
        ("hnsw", hnsw),
        ("rls", rls),
    ):
        commands.command(name, help=explained(command))(command)
    application.add_typer(
        commands,
        name="db",
        help="Look after the database: its schema, its state, its room. Example: [bold]onfile db doctor[/]",
        rich_help_panel="Database",
    )


def upgrade(*, db: Database = "") -> None:
    """Bring the database's tables to this version of onfile. Run twice, or by several processes, it is done once.

    Tables that the library's setup() made are taken over with the facts in them.

    Example: [bold]onfile db upgrade --db postgresql://onfile@localhost/facts[/]
    """
    state = finish(_upgrade(db))
    write(f"at revision {state.current}\n")


def current(*, as_json: AsJson = False, db: Database = "") -> None:
    """Print the revision that the database is at, and the one of this version of onfile.

    Example: [bold]onfile db current[/]
    """
    state = finish(_state(db))
    if as_json:
        write_json({"current": state.current, "head": state.head})
    else:
        write(f"at revision {state.current or 'none'}, this version of onfile is at {state.head}\n")


def check(*, as_json: AsJson = False, db: Database = "") -> None:
    """Compare the database's tables with their definitions; the exit code is 1 if anything differs.

    Example: [bold]onfile db check[/]
    """
    state = finish(_state(db))
    if as_json:
        write_json({"current": state.current, "head": state.head, "differences": list(state.differences)})
    else:
        for difference in state.differences:
            write(f"{difference}\n")
        for finding in of_revision(state):
            note(f"{finding.found}: {finding.do}")
        if not state.pending and not state.differences:
            write("the tables are as defined\n")
    if state.pending or state.differences:
        raise typer.Exit(1)


def sql(*, db: Database = "") -> None:
    """Print the statements that make the tables, for somebody else to run. The database is not opened.

    Example: [bold]onfile db sql --db postgresql:// > onfile.sql[/]
    """
    from ..stores.migrate import as_sql
    from .database import place_of

    kind = "sqlite" if not db else place_of(db).url.get_backend_name()
    if kind not in {"sqlite", "postgresql", "mysql", "mariadb"}:
        msg = f"onfile keeps facts in SQLite, PostgreSQL, MySQL and MariaDB, not in {kind}"
        raise Failure(msg)
    write(as_sql(f"{kind}://"))


def vacuum(*, full: Full = False, db: Database = "") -> None:
    """Give back the room of what was deleted: VACUUM and an empty log, or a server's own way on onfile's tables.

    Example: [bold]onfile db vacuum[/]
    """
    finish(_vacuum(db, full=full))
    note("done")


def sweep(*, as_json: AsJson = False, db: Database = "") -> None:
    """Delete facts that have expired, and receipts of writes too old to be retried.

    Example: [bold]onfile db sweep[/]
    """
    report = finish(_sweep(db))
    if as_json:
        write_json({"expired": report.expired, "receipts": report.receipts})
    else:
        write(f"{counted(report.expired, 'expired fact')} and {counted(report.receipts, 'receipt')} deleted\n")


async def _upgrade(db: str) -> "SchemaState":
    from ..stores import migrate
    from .database import reached

    async with reached(db, make=True) as provider:
        await migrate.upgrade(provider.engine)
        return await migrate.state_of(provider.engine)


async def _state(db: str) -> "SchemaState":
    from ..stores.migrate import state_of
    from .database import reached

    async with reached(db) as provider:
        return await state_of(provider.engine)


@asynccontextmanager
async def _whole(db: str) -> "AsyncGenerator[SqlMemoryProvider]":
    """Connect to a database whose tables are there, making none."""
    from ..stores.health import missing_tables
    from .database import reached

    async with reached(db) as provider:
        missing = await missing_tables(provider.engine)
        if missing:
            finding = without(missing)
            msg = f"{finding.found}; {finding.do}"
            raise Failure(msg)
        yield provider


async def _vacuum(db: str, *, full: bool) -> None:
    from ..stores.health import vacuum as give_back

    async with _whole(db) as provider:
        await give_back(provider.engine, full=full)


async def _sweep(db: str) -> "SweepReport":
    async with _whole(db) as provider:
        return await provider.sweep()
