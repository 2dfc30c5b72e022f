"""`onfile db rls`: PostgreSQL itself holds each transaction to the scopes that were set for it."""

from typing import TYPE_CHECKING, Annotated

import typer

from .failures import Failure
from .loop import finish
from .options import Database
from .output import counted, note, write

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy import Connection

    from ..stores.row_security import RowSecurity


def rls(
    *,
    role: Annotated[
        str | None,
        typer.Option(
            "--role", metavar="NAME", help="The role that the application connects as; it is granted what it needs."
        ),
    ] = None,
    operator: Annotated[
        list[str] | None,
        typer.Option(
            "--operator",
            metavar="NAME",
            help="A role that may see every scope, for a console; repeat it for several. The tables' owner may anyway.",
        ),
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="Remove the policies; what was granted stays.")] = False,
    only_print: Annotated[
        bool, typer.Option("--print", help="Print the statements, for somebody else to run, and change nothing.")
    ] = False,
    db: Database = "",
) -> None:
    """Have PostgreSQL itself refuse every row outside the scopes of a transaction. Run as the tables' owner.

    Run twice it is done once. The application then connects as the role and builds its provider with
    row_level_security=True.

    Example: [bold]onfile db rls --role onfile_app --db postgresql://owner@localhost/facts[/]
    """
    if off and (role or operator):
        msg = "--off removes all policies and takes neither --role nor --operator"
        raise Failure(msg)
    statements, state = finish(_change(db, role=role, operators=operator or (), off=off, dry=only_print))
    if only_print:
        write("BEGIN;\n" + "".join(f"{statement};\n" for statement in statements) + "COMMIT;\n")
    elif off:
        write("row-level security is off\n")
    else:
        write(f"row-level security is on for {counted(len(state.guarded), 'table')}\n")
        if role:
            note(f"have the application connect as {role}, with row_level_security=True")
        if state.operators:
            note(f"besides the tables' owner, every scope can be seen by {', '.join(state.operators)}")


async def _change(
    db: str, *, role: str | None, operators: "Sequence[str]", off: bool, dry: bool
) -> "tuple[list[str], RowSecurity]":
    from ..stores.dialects import database_of
    from ..stores.row_security import change, installing, removing, row_security_of
    from .database import reached

    def install(conn: "Connection") -> list[str]:
        return installing(conn, role=role, operators=operators)

    statements_of: Callable[[Connection], list[str]] = removing if off else install
    async with reached(db) as provider:
        if provider.engine.dialect.name != "postgresql":
            msg = f"row-level security is PostgreSQL's, and this database is {provider.engine.dialect.name}"
            raise Failure(msg)
        statements = await change(database_of(provider.engine), statements_of, dry=dry)
        async with provider.engine.connect() as conn:
            return statements, await row_security_of(conn)
