"""`onfile db doctor`: how a database is, in counts, and what to do about each finding."""

import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..text import shown_id
from .embedders import EmbedderName, embedder_named
from .loop import finish
from .options import AsJson, Database
from .output import counted, write_json
from .transfer import LONG_FACT, LONG_KEY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..recall import Embedder
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


def doctor(
    *, max_memories: MaxMemories = 20, embedder: EmbedderName = None, as_json: AsJson = False, db: Database = ""
) -> None:
    """Say how the database is, in counts, and what to do about each finding; exit code 1 if one needs action.

    Nothing is changed, not even where tables are missing. With --embedder it counts the facts without a
    vector of that one; without it, those without any where others have one.

    Example: [bold]onfile db doctor[/]
    """
    model = embedder_named(embedder)
    health, state, missing = finish(_examine(db, max_memories, model))
    findings = [without(missing)] if missing else _of_schema(state)
    findings += _findings(health, max_memories, model) if health is not None else []
    if as_json:
        counts = asdict(health) if health is not None else {}
        write_json(counts | {"revision": state.current, "findings": [asdict(finding) for finding in findings]})
    else:
        _tell(health, state, findings)
    if any(finding.needs_action for finding in findings):
        raise typer.Exit(1)


async def _examine(
    db: str, max_memories: int, embedder: "Embedder | None"
) -> "tuple[Health | None, SchemaState, tuple[str, ...]]":
    from sqlalchemy.exc import SQLAlchemyError

    from ..errors import StoreError
    from ..stores.administration import KEEP_RECEIPTS
    from ..stores.health import health_of, missing_tables
    from ..stores.migrate import state_of
    from .database import reached

    now = datetime.now(UTC)
    async with reached(db) as provider:
        state, missing = await state_of(provider.engine), await missing_tables(provider.engine)
        if missing:
            return None, state, missing
        try:
            health = await health_of(
                provider.engine,
                now=now,
                receipts_before=now - KEEP_RECEIPTS,
                max_fact=LONG_FACT,
                max_key=LONG_KEY,
                max_memories=max_memories,
                embedder=embedder,
                row_level_security=provider.row_level_security,
            )
        except (StoreError, SQLAlchemyError):
            # What is asked for may be the very column that is not there, and to say that is what we are for.
            if not state.differences:
                raise
            health = None
        return health, state, ()


def without(missing: "Sequence[str]") -> Finding:
    """Find that tables are missing."""
    return Finding(
        found=f"{counted(len(missing), 'table')} of onfile missing in this database: {', '.join(missing)}",
        do="run 'onfile db upgrade'",
        needs_action=True,
    )


NEWER = Finding(
    found="a newer version of onfile has upgraded this database", do="install that version", needs_action=True
)
PENDING = Finding(found="the schema is not marked as this version's", do="run 'onfile db upgrade'", needs_action=True)


def of_revision(state: "SchemaState") -> list[Finding]:
    """Find that the schema is not this version's."""
    return ([NEWER] if state.newer else [PENDING]) if state.pending else []


def _of_schema(state: "SchemaState") -> list[Finding]:
    findings = of_revision(state)
    if state.differences:
        findings.append(
            Finding(
                found=f"the tables differ from their definitions in {counted(len(state.differences), 'place')}",
                do="'onfile db check' names them; put them right before the next upgrade",
                needs_action=True,
            )
        )
    return findings


def _findings(health: "Health", max_memories: int, embedder: "Embedder | None") -> list[Finding]:
    findings = _states(health)
    unindexed = health.without_vector if health.vectors or embedder is not None else 0
    lacks = "no vector, and others have one" if embedder is None else f"no vector of {embedder.model}"
    for count, noun, meaning, do, needs_action in (
        (unindexed, "fact", lacks, "run 'onfile reindex'", True),
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
    if "sql_mode" in health.settings and "STRICT_" not in health.settings["sql_mode"]:
        states.append(
            Finding(
                found="sql_mode is not strict, so that the server cuts what does not fit instead of refusing it",
                do="add STRICT_TRANS_TABLES to sql_mode on the server",
                needs_action=True,
            )
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
