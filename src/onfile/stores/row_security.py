"""PostgreSQL's row-level security on the tables of facts: the policies, who they hold, and how they stand."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from ..errors import StoreError
from .derived import agent_memory_change, agent_memory_revision, agent_memory_vector
from .halfvec import agent_memory_halfvec
from .history import agent_memory_deletion, agent_memory_history
from .journals import journal_metadata
from .managed import VERSION_TABLE
from .schema import agent_memory, agent_memory_receipt
from .sight import LOCK_SETUP, OPERATOR_POLICY, SETTING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sqlalchemy import Connection
    from sqlalchemy.ext.asyncio import AsyncConnection

    from .transactions import Database, Transaction

logger = logging.getLogger(__name__)

# An array that the planner works out once a statement, and looks up in the index of scopes. A setting
# that is not there is NULL, one that a transaction left behind is '': both are no scope at all.
_SCOPES = f"ARRAY(SELECT jsonb_array_elements_text(NULLIF(NULLIF(current_setting('{SETTING}', true), ''), '*')::jsonb))"
_ANY_SCOPE = f"cardinality({_SCOPES}) > 0"
_OPERATES = f"(SELECT current_setting('{SETTING}', true)) = '*'"


def _at_scope(table: str) -> str:
    return f"{table}.scope = ANY ({_SCOPES})"


def _of_a_fact(table: str) -> str:
    # The facts that are looked into here are themselves only those in sight.
    return f"EXISTS (SELECT FROM {agent_memory.name} AS fact WHERE fact.id = {table}.memory_id)"


_WHOLE = "ALL"
_RIGHTS = ("SELECT", "INSERT", "UPDATE", "DELETE")
_POLICIES: dict[str, dict[str, str]] = {
    **{
        table.name: {_WHOLE: _at_scope(table.name)}
        for table in (agent_memory, agent_memory_revision, agent_memory_change, agent_memory_halfvec)
    },
    **{table.name: {_WHOLE: _of_a_fact(table.name)} for table in (agent_memory_vector, agent_memory_history)},
    # Digests, which tell no scope. They are only ever asked for and added to, by work that has a scope.
    agent_memory_receipt.name: {"SELECT": _ANY_SCOPE, "INSERT": _ANY_SCOPE},
    # Ids of what is gone. Whoever deletes adds one; to read them is an operator's act.
    agent_memory_deletion.name: {"INSERT": _ANY_SCOPE},
}
"""What a transaction that is held to scopes may do with each table, by command."""

GUARDED = tuple(_POLICIES)
"""The tables that row-level security is for; the journals of runs are not among them."""

_POLICY_NAMES = {_WHOLE: "onfile_scopes", "SELECT": "onfile_scopes_read", "INSERT": "onfile_scopes_add"}
_STANDING = text(
    "SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity, pg_get_userbyid(c.relowner),"
    " pg_has_role(c.relowner, 'USAGE'),"
    " ARRAY(SELECT CAST(s.relname AS text) FROM pg_depend d JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'"
    " WHERE d.refobjid = c.oid AND d.deptype IN ('a', 'i')),"
    " ARRAY(SELECT DISTINCT CAST(pg_get_userbyid(g.grantee) AS text) FROM aclexplode(c.relacl) g"
    " WHERE g.privilege_type = 'INSERT' AND g.grantee NOT IN (0, c.relowner)),"
    " ARRAY(SELECT CAST(pg_get_userbyid(held.role) AS text) FROM pg_policy p, unnest(p.polroles) AS held (role)"
    " WHERE p.polrelid = c.oid AND p.polname = :operator AND held.role NOT IN (0, c.relowner))"
    " FROM pg_class c WHERE c.oid IN (SELECT to_regclass(name) FROM unnest(CAST(:names AS text[])) AS n (name))"
)
_ROLE = text(
    "SELECT rolsuper OR rolbypassrls, pg_has_role(oid, CAST(:owner AS name), 'USAGE') FROM pg_roles"
    " WHERE rolname = :role"
)
_SCHEMA_WITHHELD = text(
    "SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE c.oid = to_regclass('agent_memory') AND NOT has_schema_privilege(CAST(:role AS name), n.oid, 'USAGE')"
)
_IS_HELD = text("SELECT row_security_active(to_regclass('agent_memory'))")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """One table as it stands."""

    name: str
    guarded: bool
    owner: str
    ours: bool
    """Whether we are its owner, or may act as such."""
    sequences: tuple[str, ...]
    granted: tuple[str, ...]
    """The roles that may write to it, besides its owner."""
    operators: tuple[str, ...]
    """The roles that its policy lets see everything, besides its owner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSecurity:
    """How row-level security stands in a database."""

    guarded: tuple[str, ...]
    """The tables whose rows are held to scopes."""
    unguarded: tuple[str, ...]
    """The tables of facts whose rows are not."""
    operators: tuple[str, ...]
    """The roles that can see every scope when they ask to, besides the tables' owner."""
    held: bool
    """Whether it holds the role that asks."""


async def row_security_of(conn: AsyncConnection) -> RowSecurity:
    """Answer how row-level security stands; off on a database that has none."""
    if conn.dialect.name != "postgresql":
        return RowSecurity(guarded=(), unguarded=(), operators=(), held=False)
    tables = [table for table in await conn.run_sync(_standing) if table.name in _POLICIES]
    return RowSecurity(
        guarded=tuple(table.name for table in tables if table.guarded),
        unguarded=tuple(table.name for table in tables if not table.guarded),
        operators=tuple(sorted({role for table in tables for role in table.operators})),
        held=bool((await conn.execute(_IS_HELD)).scalar_one()),
    )


async def confirm(database: Database, *, wanted: bool) -> None:
    """See whether the database holds the role to scopes just where the provider expects it.

    Raises:
        StoreError: It does, and the provider would set none and so see nothing.
    """

    async def work(conn: AsyncConnection) -> bool:
        return bool((await conn.execute(_IS_HELD)).scalar_one())

    held = await database.read(work)
    if held and not wanted:
        msg = (
            "this database holds each transaction to its scopes by row-level security, and this provider sets none, "
            "so that it would see nothing; build it with row_level_security=True"
        )
        raise StoreError(msg)
    if wanted and not held:
        logger.warning(
            "row_level_security=True, but the database does not hold this role to it: either its policies are not "
            "installed (`onfile db rls`), or the role is a superuser or has BYPASSRLS"
        )


def installing(conn: Connection, *, role: str | None = None, operators: Iterable[str] = ()) -> list[str]:
    """Answer the statements that install the policies, in an order in which they may be run again and again.

    Args:
        conn: To the database as it stands.
        role: What the application connects as; it is granted what it needs.
        operators: Roles that may see every scope when they ask to. Those of an earlier installation stay.

    Raises:
        StoreError: A table is missing, a role is, or one is not what the policies could hold.
    """
    standing = _standing(conn)
    tables = [table for table in standing if table.name in _POLICIES]
    owner = _owner(tables)
    roles = dict.fromkeys([*(role for table in tables for role in table.granted), *((role,) if role else ())])
    chosen = dict.fromkeys([*(role for table in tables for role in table.operators), *operators])
    for name in dict.fromkeys([*chosen, *((role,) if role else ())]):
        _check(conn, name, owner=owner, restricted=name == role)
    quote = conn.dialect.identifier_preparer.quote
    statements: list[str] = []
    for table in tables:
        statements += _guarding(table, operators=", ".join(map(quote, dict.fromkeys((table.owner, *chosen)))))
    for name in dict.fromkeys([*roles, *chosen]):
        schema = conn.execute(_SCHEMA_WITHHELD, {"role": name}).scalar()
        statements += [f"GRANT USAGE ON SCHEMA {quote(schema)} TO {quote(name)}"] if schema is not None else []
        statements += _granting(standing, to=quote(name), everything=name in chosen)
    return statements


def removing(conn: Connection) -> list[str]:
    """Answer the statements that remove the policies; what was granted stays.

    Raises:
        StoreError: A table is missing, or belongs to somebody else.
    """
    tables = [table for table in _standing(conn) if table.name in _POLICIES]
    _owner(tables)
    statements: list[str] = []
    for table in tables:
        statements += _dropping(table.name)
        statements.append(f"ALTER TABLE {table.name} NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY")
    return statements


def guard_new_tables(conn: Connection) -> None:
    """Where row-level security is on, extend it to tables that have come since, with the grants of the others."""
    tables = [table for table in _standing(conn) if table.name in _POLICIES]
    if all(table.guarded for table in tables) or not any(table.guarded for table in tables):
        return
    if all(table.ours for table in tables):
        _run(conn, installing(conn))


def _run(conn: Connection, statements: Sequence[str]) -> None:
    for statement in statements:
        # A role may be called anything, also what would be a parameter.
        conn.execute(text(statement.replace(":", "\\:")))


async def change(
    database: Database, statements_of: Callable[[Connection], list[str]], *, dry: bool = False
) -> list[str]:
    """Run what `installing` or `removing` answers, all of it or nothing, or only answer it.

    Only one process at a time does this, or sets up.
    """

    async def work(transaction: Transaction) -> list[str]:
        await transaction.conn.execute(LOCK_SETUP)
        statements = await transaction.conn.run_sync(statements_of)
        if not dry:
            await transaction.conn.run_sync(_run, statements)
        return statements

    return await database.transact(work)


def _standing(conn: Connection) -> list[_Table]:
    names = [*GUARDED, *journal_metadata.tables, VERSION_TABLE]
    named = {"names": names, "operator": OPERATOR_POLICY}
    found: dict[str, _Table] = {}
    for name, guarded, owner, ours, sequences, granted, operators in conn.execute(_STANDING, named):
        found[name] = _Table(
            name=name,
            guarded=guarded,
            owner=owner,
            ours=ours,
            sequences=tuple(sequences),
            granted=tuple(granted),
            operators=tuple(operators),
        )
    return [found[name] for name in names if name in found]


def _owner(tables: Sequence[_Table]) -> str:
    if agent_memory.name not in {table.name for table in tables}:
        msg = "the database has no onfile tables yet; run `onfile db upgrade` first"
        raise StoreError(msg)
    foreign = next((table for table in tables if not table.ours), None)
    if foreign is not None:
        msg = f"only the owner of the table {foreign.name} may do this; connect as {foreign.owner}"
        raise StoreError(msg)
    return tables[0].owner


def _check(conn: Connection, name: str, *, owner: str, restricted: bool) -> None:
    row: Any = conn.execute(_ROLE, {"role": name, "owner": owner}).first()
    if row is None:
        msg = f"there is no database role {name}; make it first, with CREATE ROLE \"{name}\" LOGIN PASSWORD '…'"
        raise StoreError(msg)
    bypasses, owns = row
    if restricted and (bypasses or owns):
        why = "is a superuser or has BYPASSRLS" if bypasses else "owns the tables"
        msg = f"no policy holds the role {name}, which {why}; name one that is an ordinary role"
        raise StoreError(msg)


def _guarding(table: _Table, *, operators: str) -> list[str]:
    name = table.name
    statements = [
        f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
        *_dropping(name),
        f"CREATE POLICY {OPERATOR_POLICY} ON {name} TO {operators} USING ({_OPERATES}) WITH CHECK ({_OPERATES})",
    ]
    for command, condition in _POLICIES[name].items():
        parts = [f"USING ({condition})"] if command != "INSERT" else []
        parts += [f"WITH CHECK ({condition})"] if command != "SELECT" else []
        statements.append(f"CREATE POLICY {_POLICY_NAMES[command]} ON {name} FOR {command} {' '.join(parts)}")
    return statements


def _dropping(name: str) -> list[str]:
    return [f"DROP POLICY IF EXISTS {policy} ON {name}" for policy in (OPERATOR_POLICY, *_POLICY_NAMES.values())]


def _granting(tables: Sequence[_Table], *, to: str, everything: bool) -> list[str]:
    statements: list[str] = []
    for table in tables:
        allowed: Iterable[str] = _RIGHTS
        if table.name not in {*_POLICIES, *journal_metadata.tables}:
            allowed = ("SELECT",)
        elif not everything and _WHOLE not in _POLICIES.get(table.name, {_WHOLE: ""}):
            allowed = _POLICIES[table.name]
        statements.append(f"GRANT {', '.join(allowed)} ON {table.name} TO {to}")
        statements += [f"GRANT USAGE ON SEQUENCE {sequence} TO {to}" for sequence in table.sequences]
    return statements
