"""The options that several commands share, each explained once."""

import inspect
import os
from collections.abc import Callable
from typing import Annotated, Any

import typer

DATABASE_VARIABLE = "ONFILE_DB"


def explained(command: Callable[..., Any]) -> str:
    """Answer a command's docstring as its help, with each paragraph one line for the terminal to break."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.splitlines()) for paragraph in paragraphs)


def _given_database(context: typer.Context, value: str) -> str:
    # The command's own --db, else the one before the command, else the environment; "" is the default file.
    return value or (context.obj or "") or os.environ.get(DATABASE_VARIABLE, "")


Database = Annotated[
    str,
    typer.Option(
        "--db",
        metavar="URL",
        help=(
            "Where the facts are: a database URL or the path of an SQLite file. Before or after the command. "
            "Without it ONFILE_DB, and without that a file in your data directory. "
            "Example: --db postgresql://onfile@localhost/facts"
        ),
        callback=_given_database,
        show_default=False,
    ),
]

AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON document for a program to read. Example: onfile list --json")
]

AtScopes = Annotated[
    list[str] | None,
    typer.Option("--scope", metavar="SCOPE", help="Only what is held at this scope; repeat it for several."),
]

Tenant = Annotated[
    str | None,
    typer.Option("--tenant", metavar="REF", help="The organisation that the actor acts in. Example: --tenant acme"),
]

ActorId = Annotated[
    str, typer.Option("--actor", metavar="ID", help="Whose turn it is, by id. Example: --actor ana", show_default=False)
]

RecordId = Annotated[
    str, typer.Argument(metavar="ID", help="The fact's id, as 'onfile list' shows it.", show_default=False)
]
