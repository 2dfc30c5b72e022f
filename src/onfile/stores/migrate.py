"""Bringing a database to the schema of this version, with Alembic revisions that are in the package.

A host with migrations of its own is not disturbed: the version is kept in a table called
`onfile_version`, and `include_object` keeps our tables out of the host's differ.
Alembic is imported only where something is done with it; `setup()` never needs it.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import MetaData
from sqlalchemy.engine import make_url

from ..errors import StoreError
from . import halfvec
from .dialects import database_of
from .journals import journal_metadata
from .managed import VERSION_TABLE, managed_tables
from .schema import metadata

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory
    from sqlalchemy import Connection
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

_MIGRATIONS = Path(__file__).parent / "migrations"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaState:
    """Where a database stands."""

    current: str | None
    """The revision it was brought to; None for one that only `setup()` made, or nobody."""
    head: str
    """The revision of this version of onfile."""
    differences: tuple[str, ...]
    """What its tables differ in from the definitions, by table and column."""
    newer: bool = False
    """Whether a newer version of onfile has upgraded it, so that `upgrade` refuses."""

    @property
    def pending(self) -> bool:
        """Whether `upgrade` has something to do."""
        return self.current != self.head


def include_object(object_: Any, name: str | None, type_: str, reflected: bool, compare_to: Any) -> bool:  # noqa: FBT001  # Alembic calls it so
    """Answer False for onfile's tables: hand this to your `context.configure(include_object=…)`."""
    del object_, reflected, compare_to
    return not (type_ == "table" and name in managed_tables())


async def upgrade(engine: AsyncEngine, *, revision: str = "head") -> None:
    """Bring the database to the newest revision; safe from several processes at once.

    Tables that `setup()` made are taken over as they are.

    Args:
        engine: Of the database.
        revision: Go no further than to this one.

    Raises:
        StoreError: Alembic is not installed, or the database is of a newer version of onfile.
    """
    _scripts()  # said before anything is touched
    database = database_of(engine)
    await database.create(_Revisions(revision))
    if revision == "head":
        await halfvec.set_up(database, engine.dialect.name)  # the extension may have come since its revision


async def state_of(engine: AsyncEngine) -> SchemaState:
    """Answer where the database stands, changing nothing.

    Raises:
        StoreError: Alembic is not installed.
    """
    _scripts()

    async def work(conn: AsyncConnection) -> SchemaState:
        return await conn.run_sync(_state)

    return await database_of(engine).read(work)


def as_sql(url: str) -> str:
    """Write all revisions as the statements of the URL's kind of database, for somebody else to run.

    Raises:
        StoreError: Alembic is not installed.
    """
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext

    scripts, written = _scripts(), io.StringIO()
    options: Any = {"as_sql": True, "destination_rev": "head", "fn": _steps(scripts, "head")}
    with EnvironmentContext(Config(), scripts, **options) as environment:
        environment.configure(
            dialect_name=make_url(url).get_backend_name(),
            output_buffer=written,
            version_table=VERSION_TABLE,
            target_metadata=metadata,
        )
        with environment.begin_transaction():
            environment.run_migrations()
    return written.getvalue()


class _Revisions(MetaData):
    """What `create` runs under the lock that serialises `setup()`: revisions instead of definitions."""

    def __init__(self, revision: str) -> None:
        super().__init__()
        self._revision = revision

    def create_all(self, bind: Any, tables: Any = None, checkfirst: Any = True) -> None:  # noqa: ARG002, FBT002  # SQLAlchemy's own signature
        from alembic.config import Config
        from alembic.runtime.environment import EnvironmentContext

        scripts = _scripts()
        options: Any = {"destination_rev": self._revision, "fn": _steps(scripts, self._revision)}
        with EnvironmentContext(Config(), scripts, **options) as environment:
            # The transaction is ours already, so that Alembic commits nothing.
            environment.configure(connection=bind, version_table=VERSION_TABLE, target_metadata=metadata)
            environment.run_migrations()


def _steps(scripts: ScriptDirectory, revision: str) -> Any:
    def steps(standing: Any, _: Any) -> Any:
        if _is_newer(scripts, standing):
            msg = "the database was upgraded by a newer version of onfile; install that version"
            raise StoreError(msg)
        # As Alembic's own command does.
        return scripts._upgrade_revs(revision, standing)  # pyright: ignore[reportPrivateUsage]  # it offers no other way

    return steps


def _is_newer(scripts: ScriptDirectory, standing: Any) -> bool:
    known = {script.revision for script in scripts.walk_revisions()}
    return not known.issuperset(_heads(standing))


def _heads(standing: Any) -> tuple[str, ...]:
    """Answer what Alembic calls the standing heads, of which we have one at most."""
    if not standing:
        return ()
    return (standing,) if isinstance(standing, str) else tuple(standing)


def _state(conn: Connection) -> SchemaState:
    from alembic.autogenerate import compare_metadata
    from alembic.runtime.migration import MigrationContext

    context = MigrationContext.configure(
        conn, opts={"version_table": VERSION_TABLE, "include_object": _ours, "compare_server_default": False}
    )
    both: Any = [metadata, journal_metadata]  # typed as one, though a sequence is documented
    found: list[Any] = compare_metadata(context, both)
    scripts, current = _scripts(), context.get_current_revision()
    head, newer = scripts.get_current_head() or "", _is_newer(scripts, current)
    if current != head:
        # Whole tables that the next upgrade makes are no difference yet.
        missing = {what[1].name for what in found if what[0] == "add_table"}
        found = [what for what in found if not (what[0] == "add_table" or _table_of(what) in missing)]
    return SchemaState(current=current, head=head, differences=tuple(_named(one) for one in found), newer=newer)


def _table_of(difference: Any) -> str | None:
    return difference[1].table.name if difference[0] == "add_index" else None


def _ours(object_: Any, name: str | None, type_: str, reflected: bool, compare_to: Any) -> bool:  # noqa: FBT001  # Alembic calls it so
    del object_, reflected, compare_to
    return type_ != "table" or name in {*metadata.tables, *journal_metadata.tables}


def _named(difference: Any) -> str:
    if isinstance(difference, list):
        return "; ".join(_named(one) for one in difference)  # pyright: ignore[reportUnknownVariableType]  # Alembic nests untyped lists
    what, *about = difference
    names = [str(getattr(one, "name", one)) for one in about if isinstance(one, str) or hasattr(one, "name")]
    return f"{what.replace('_', ' ')}: {' '.join(names)}"


def _scripts() -> ScriptDirectory:
    try:
        from alembic.script import ScriptDirectory as Directory
    except ModuleNotFoundError:
        msg = "migrations need Alembic: pip install 'onfile[cli]'"
    else:
        return Directory(str(_MIGRATIONS))
    raise StoreError(msg)
