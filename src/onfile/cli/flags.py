"""`onfile pin`, `unpin` and `expire`: what an operator says of a fact beside its text."""

import sys
from datetime import UTC, datetime
from typing import Annotated

import typer

from .facts import PANEL
from .failures import Failure
from .loop import finish
from .options import AsJson, Database, RecordId, explained
from .output import write_json

_UNKNOWN = "there is no fact with that id; 'onfile list' shows the ids"


def add_to(application: typer.Typer) -> None:
    """Add the commands of this module."""
    for command in (pin, unpin, expire):
        application.command(command.__name__, help=explained(command), rich_help_panel=PANEL)(command)


def pin(
    id: RecordId,  # noqa: A002  # the record's own field name
    *,
    as_json: AsJson = False,
    db: Database = "",
) -> None:
    """Pin a fact: it is in every turn's block, whatever the turn is about. Its date stays.

    Example: [bold]onfile pin mem_01KGENV700JV36Q7GS2BKFWKJD[/]
    """
    finish(_pin(db, id, pinned=True, as_json=as_json))


def unpin(
    id: RecordId,  # noqa: A002  # the record's own field name
    *,
    as_json: AsJson = False,
    db: Database = "",
) -> None:
    """Unpin a fact: it is in a turn's block again when it matters to the turn. Its date stays.

    Example: [bold]onfile unpin mem_01KGENV700JV36Q7GS2BKFWKJD[/]
    """
    finish(_pin(db, id, pinned=False, as_json=as_json))


def expire(
    id: RecordId,  # noqa: A002  # the record's own field name
    *,
    at: Annotated[
        str,
        typer.Option(
            "--at",
            metavar="TIME",
            help="From when on no turn sees it: a date, or a time with or without an offset; UTC unless told.",
        ),
    ] = "",
    never: Annotated[bool, typer.Option("--never", help="Take an expiry back.")] = False,
    as_json: AsJson = False,
    db: Database = "",
) -> None:
    """Set when a fact stops being read, or take that back. Until then nothing changes.

    Afterwards a wider fact of the same key is shown again. 'onfile db sweep' deletes what has expired.

    Example: [bold]onfile expire mem_01KGENV700JV36Q7GS2BKFWKJD --at 2027-01-31[/]
    """
    if bool(at) == never:
        msg = "say when it expires with --at, or --never to take an expiry back"
        raise Failure(msg)
    finish(_expire(db, id, _time_of(at) if at else None, as_json=as_json))


def _time_of(spelled: str) -> datetime:
    try:
        moment = datetime.fromisoformat(spelled)
    except ValueError:
        moment = None
    if moment is None:
        msg = "--at is no time; write a date such as 2027-01-31, or a time such as 2027-01-31T18:00+01:00"
        raise Failure(msg)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)


async def _expire(db: str, id: str, moment: datetime | None, *, as_json: bool) -> None:  # noqa: A002  # the record's own field name
    from .database import opened

    async with opened(db) as provider:
        known = await provider.expire(id=id, expires_at=moment)
    if not known:
        raise Failure(_UNKNOWN)
    if as_json:
        write_json({"expiresAt": moment.isoformat() if moment else None})
    else:
        sys.stdout.write(f"not read from {moment:%Y-%m-%d %H:%M} UTC on\n" if moment else "does not expire\n")


async def _pin(db: str, id: str, *, pinned: bool, as_json: bool) -> None:  # noqa: A002  # the record's own field name
    from .database import opened

    async with opened(db) as provider:
        known = await provider.pin(id=id, pinned=pinned)
    if not known:
        raise Failure(_UNKNOWN)
    if as_json:
        write_json({"pinned": pinned})
    else:
        sys.stdout.write("pinned\n" if pinned else "unpinned\n")
