"""The options that several commands share, each explained once."""

import inspect
import os
from collections.abc import Callable
from typing import Annotated, Any

import typer

from ..text import unkeepable
from .failures import Failure

DATABASE_VARIABLE = "ONFILE_DB"


def explained(command: Callable[..., Any]) -> str:
    """Answer a command's docstring as its help, with each paragraph one line for the terminal to break."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.splitlines()) for paragraph in paragraphs)


def _given_database(context: typer.Context, value: str) -> str:
    # The command's own --db, else the one before the command, else the environment; "" is the default file.
    return value or (context.obj or "") or os.environ.get(DATABASE_VARIABLE, "")


def _told(value: str, *, option: str, blank: bool, such: str) -> str:
    # What a variable that is not set leaves behind must not be read as "everything" or as nobody.
    if blank:
        msg = f"{option} is blank; name {such}"
        raise Failure(msg)
    if unkeepable(value) is not None:
        msg = f"{option} is no UTF-8 text, so nothing can be on file there; name {such}"
        raise Failure(msg)
    return value


def named_scopes(value: list[str] | None) -> list[str] | None:
    """Refuse a blank among the scopes that a person named."""
    for scope in value or []:
        named_scope(scope)
    return value


def named_scope(value: str) -> str:
    """Refuse a blank for the scope that a person named."""
    return _told(value, option="--scope", blank=not value.strip(), such="a scope such as tenant:acme")


def named_actor(value: str | None) -> str | None:
    """Refuse nobody for the person who was named."""
    return (
        value if value is None else _told(value, option="--actor", blank=not value, such="a person by id, such as ana")
    )


def named_author(value: str) -> str:
    """Refuse nobody for the person who states a fact."""
    return _told(value, option="--as", blank=not value, such="the person who states it by id, or leave --as out")


def named_tenant(value: str | None) -> str | None:
    """Refuse an organisation without a name."""
    such = "the organisation, such as acme, or leave --tenant out"
    return value if value is None else _told(value, option="--tenant", blank=not value, such=such)


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
    typer.Option(
        "--scope",
        metavar="SCOPE",
        help="Only what is held at this scope; repeat it for several. Example: --scope tenant:acme",
        callback=named_scopes,
    ),
]

Tenant = Annotated[
    str | None,
    typer.Option(
        "--tenant",
        metavar="REF",
        help="The organisation that the actor acts in. Example: --tenant acme",
        callback=named_tenant,
    ),
]

ActorId = Annotated[
    str,
    typer.Option(
        "--actor",
        metavar="ID",
        help="Whose turn it is, by id. Example: --actor ana",
        callback=named_actor,
        show_default=False,
    ),
]

RecordId = Annotated[
    str, typer.Argument(metavar="ID", help="The fact's id, as 'onfile list' shows it.", show_default=False)
]
