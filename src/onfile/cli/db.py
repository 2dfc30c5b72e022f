"""`onfile db`: the schema's version, the database's state, and what an operator does about either."""

import sys
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..text import shown_id
from .failures import Failure
from .loop import finish
from .options import AsJson, Database, explained
from .output import counted, note, write, write_json
from .rls import rls
from .transfer import LONG_FACT, LONG_KEY
from .vectors import hnsw

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from ..stores import SqlMemoryProvider, SweepReport
    from ..stores.health import Health
    from ..stores.migrate import SchemaState

_RUNS_NAMED = 10
MaxMemories = Annotated[
    int,
    typer.Option(
        "--max-memories",
        metavar="N",
        min=0,
        help="How many places your blocks have: more pins than that at a scope are a finding. "
        "Example: --max-memories 30",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something about a database that a person may want to act on."""

    found: str
    do: str
    needs_action: bool


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
        if state.pending:
            note(_PENDING.do)
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


def doctor(*, max_memories: MaxMemories = 20, as_json: AsJson = False, db: Database = "") -> None:
    """Say how the database is, in counts, and what to do about each finding; exit code 1 if one needs action.

    Nothing is changed, not even where tables are missing.

    Example: [bold]onfile db doctor[/]
    """
    health, state, missing = finish(_examine(db, max_memories))
    findings = _findings(health, state, max_memories) if health is not None else [_without(missing)]
    if as_json:
        counts = asdict(health) if health is not None else {}
        write_json(counts | {"revision": state.current, "findings": [asdict(finding) for finding in findings]})
    else:
        _tell(health, state, findings)
    if any(finding.needs_action for finding in findings):
        raise typer.Exit(1)


def vacuum(*, db: Database = "") -> None:
    """Give back the room of what was deleted: VACUUM and an empty log, or a server's own way on onfile's tables.

    Example: [bold]onfile db vacuum[/]
    """
    finish(_vacuum(db))
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


async def _examine(db: str, max_memories: int) -> "tuple[Health | None, SchemaState, tuple[str, ...]]":
    from ..stores.administration import KEEP_RECEIPTS
    from ..stores.health import health_of, missing_tables
    from ..stores.migrate import state_of
    from .database import reached

    now = datetime.now(UTC)
    async with reached(db) as provider:
        state, missing = await state_of(provider.engine), await missing_tables(provider.engine)
        if missing:
            return None, state, missing
        health = await health_of(
            provider.engine,
            now=now,
            receipts_before=now - KEEP_RECEIPTS,
            max_fact=LONG_FACT,
            max_key=LONG_KEY,
            max_memories=max_memories,
            row_level_security=provider.row_level_security,
        )
        return health, state, ()


@asynccontextmanager
async def _whole(db: str) -> "AsyncGenerator[SqlMemoryProvider]":
    """Connect to a database whose tables are there, making none."""
    from ..stores.health import missing_tables
    from .database import reached

    async with reached(db) as provider:
        missing = await missing_tables(provider.engine)
        if missing:
            finding = _without(missing)
            msg = f"{finding.found}; {finding.do}"
            raise Failure(msg)
        yield provider


async def _vacuum(db: str) -> None:
    from ..stores.health import vacuum as give_back

    async with _whole(db) as provider:
        await give_back(provider.engine)


async def _sweep(db: str) -> "SweepReport":
    async with _whole(db) as provider:
        return await provider.sweep()


def _without(missing: "Sequence[str]") -> Finding:
    return Finding(
        found=f"{counted(len(missing), 'table')} of onfile missing in this database: {', '.join(missing)}",
        do="run 'onfile db upgrade'",
        needs_action=True,
    )


_PENDING = Finding(found="the schema is not marked as this version's", do="run 'onfile db upgrade'", needs_action=True)


def _findings(health: "Health", state: "SchemaState", max_memories: int) -> list[Finding]:
    findings = [_PENDING] if state.pending else []
    if state.differences:
        findings.append(
            Finding(
                found=f"the tables differ from their definitions in {counted(len(state.differences), 'place')}",
                do="'onfile db check' names them; put them right before the next upgrade",
                needs_action=True,
            )
        )
    findings += _states(health)
    unindexed = health.without_vector if health.vectors else 0
    for count, noun, meaning, do, needs_action in (
        (unindexed, "fact", "no vector, and others have one", "run 'onfile reindex'", True),
        (
            health.long_facts,
            "fact",
            f"more than {LONG_FACT} characters, the most that can be written",
            "shorten them in the console when they come up",
            False,
        ),
        (
            health.long_keys,
            "key",
            f"more than {LONG_KEY} characters, the most that can be written",
            "import them under shorter keys",
            False,
        ),
        (
            health.overpinned_scopes,
            "scope",
            f"more pinned facts than a block of {max_memories} has places",
            "unpin what need not be in every turn, with 'onfile unpin'",
            True,
        ),
        (health.expired, "fact", "expired and is still on file", "run 'onfile db sweep'", True),
        (health.old_receipts, "receipt", "outlived every retry", "run 'onfile db sweep'", True),
    ):
        if count:
            verb = "" if meaning.startswith(("expired", "outlived")) else "with "
            findings.append(Finding(found=f"{counted(count, noun)} {verb}{meaning}", do=do, needs_action=needs_action))
    return findings


def _states(health: "Health") -> list[Finding]:
    """What is so or not so, where the others are counts of facts."""
    states: list[Finding] = []
    if health.unguarded:
        names = ", ".join(health.unguarded)
        states.append(
            Finding(found=f"row-level security leaves out {names}", do="run 'onfile db rls' again", needs_action=True)
        )
    if health.pending_erasures:
        named = ", ".join(map(shown_id, health.pending_erasures[:_RUNS_NAMED]))
        more = len(health.pending_erasures) - _RUNS_NAMED
        found = f"{counted(len(health.pending_erasures), 'run')} under way with something forgotten since: {named}"
        states.append(
            Finding(
                found=found + (f" and {more} more" if more > 0 else ""),
                do="it goes when the run ends: 'onfile runs resume' or 'onfile runs cancel'",
                needs_action=False,
            )
        )
    if health.pgvector_missing is not None and health.vectors:
        why, _, do = health.pgvector_missing.partition("; ")
        found = f"vectors are kept as bytes and compared in each process, because {why}"
        states.append(Finding(found=found, do=do or "see docs/databases.md", needs_action=False))
    return states


def _tell(health: "Health | None", state: "SchemaState", findings: list[Finding]) -> None:
    lines: list[Any] = [f"revision   {state.current or 'none'} of {state.head}"]
    if health is not None:
        lines = [f"database   {health.database}", *lines, *_counts(health)]
    lines += [f"{'!' if finding.needs_action else '-'} {finding.found}: {finding.do}" for finding in findings]
    sys.stdout.write("\n".join([*lines, *([] if findings else ["nothing to do"])]) + "\n")


def _counts(health: "Health") -> list[str]:
    rows = [
        "settings   " + (", ".join(f"{name} {value}" for name, value in health.settings.items()) or "none to report"),
        "facts      " + (", ".join(f"{kind} {count:,}" for kind, count in sorted(health.rows.items())) or "none"),
        "vectors    " + (", ".join(f"{model} {count:,}" for model, count in health.vectors.items()) or "none"),
    ]
    return [*rows, f"row-level security is on for {counted(len(health.guarded), 'table')}"] if health.guarded else rows
