"""`onfile list`, `publish`, `forget` and `erase`: what an operator does with single facts."""

import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, TextIO, cast

import typer

from .failures import Failure
from .loop import finish
from .options import AsJson, AtScopes, Database, Tenant, explained, named_actor, named_author, named_scope
from .output import console, counted, json_array, note, write, write_json

if TYPE_CHECKING:
    from rich.text import Text

    from ..digest import OverriddenMemory
    from ..stores import SqlMemoryProvider, StoredMemory

PANEL = "Single facts"
"""Under which heading of `onfile --help` these are."""
OPERATOR = "operator"
"""Who an operator's own act is recorded for when they do not say."""


def add_to(application: typer.Typer) -> None:
    """Add the commands of this module."""
    application.command("list", help=explained(list_facts), rich_help_panel=PANEL)(list_facts)
    application.command("publish", help=explained(publish), rich_help_panel=PANEL)(publish)
    application.command("forget", help=explained(forget), rich_help_panel=PANEL)(forget)
    application.command("erase", help=explained(erase), rich_help_panel=PANEL)(erase)


def list_facts(
    *,
    scope: AtScopes = None,
    actor: Annotated[
        str | None,
        typer.Option(
            "--actor",
            metavar="ID",
            help="What applies to this person, and which values it beats.",
            callback=named_actor,
        ),
    ] = None,
    tenant: Tenant = None,
    as_json: AsJson = False,
    db: Database = "",
) -> None:
    """List what is on file: everything, what is held at scopes, or what applies to a person.

    Always the whole list. Each fact names who said it, when, and its id for 'onfile forget' and 'onfile pin'.

    Example: [bold]onfile list --actor ana --tenant acme[/]
    """
    if scope and actor is not None:
        msg = "--scope and --actor contradict each other; choose one"
        raise Failure(msg)
    if tenant is not None and actor is None:
        msg = "--tenant says where an actor acts; name the actor with --actor"
        raise Failure(msg)
    finish(_list(db, scope, actor=actor, tenant=tenant, as_json=as_json))


def publish(
    scope: Annotated[
        str,
        typer.Option(
            "--scope",
            metavar="SCOPE",
            help="Where the fact is held: tenant:acme, global.",
            callback=named_scope,
            show_default=False,
        ),
    ],
    key: Annotated[
        str, typer.Option("--key", metavar="KEY", help="What the fact is about: date-format.", show_default=False)
    ],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The fact, one line.", show_default=False)],
    *,
    by: Annotated[
        str,
        typer.Option("--as", metavar="ACTOR", help="The person who states it, by id.", callback=named_author),
    ] = OPERATOR,
    as_json: AsJson = False,
    db: Database = "",
) -> None:
    """State a fact as a person, at any scope: an operator's act, which a model cannot undo.

    What stands there under the same key gets the new text and keeps its id and its pin.

    Example: [bold]onfile publish --scope tenant:acme --key units "weights in kilograms"[/]
    """
    finish(_publish(db, scope=scope, key=key, text=text, by=by, as_json=as_json))


def forget(
    id: Annotated[  # noqa: A002  # the record's own field name
        str | None, typer.Argument(metavar="ID", help="The fact's id, as 'onfile list' shows it.", show_default=False)
    ] = None,
    *,
    actor: Annotated[
        str,
        typer.Option(
            "--actor",
            metavar="ID",
            help="Whose fact it is, by the actor's id.",
            callback=named_actor,
            show_default=False,
        ),
    ],
    tenant: Tenant = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All facts at the actor's own scope, instead of an ID.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    as_json: AsJson = False,
    db: Database = "",
) -> None:
    """Delete one fact, or all, for the person they are about: text, index and log, for good.

    The rule is the one of the person's own page: only what is held at the actor's own scope can be deleted,
    nothing wider, and an id that the actor cannot see is as unknown as one that does not exist. 'onfile erase' is for
    an operator and any scope.

    Example: [bold]onfile forget mem_01KGENV700JV36Q7GS2BKFWKJD --actor ana --yes[/]
    """
    if (not id) != everything:
        msg = "name the fact by its id, or say --all for everything at the actor's own scope"
        raise Failure(msg)
    if not yes:
        make_sure(
            "Delete everything at this person's own scope for good?" if everything else "Delete this fact for good?"
        )
    if not id:
        _tell_count(finish(_forget_all(db, actor=actor)), as_json=as_json)
    else:
        finish(_forget(db, id, actor=actor, tenant=tenant, as_json=as_json))


def erase(
    scope: Annotated[
        str,
        typer.Option(
            "--scope",
            metavar="SCOPE",
            help="The scope, byte for byte: tenant:acme.",
            callback=named_scope,
            show_default=False,
        ),
    ],
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    as_json: AsJson = False,
    db: Database = "",
) -> None:
    """Delete all facts at one scope, for good, and say how many there were: an operator's act.

    Example: [bold]onfile erase --scope tenant:acme --yes[/]
    """
    if not yes:
        make_sure("Delete everything at this scope for good?")
    _tell_count(finish(_erase(db, scope)), as_json=as_json)


async def _list(db: str, scopes: list[str] | None, *, actor: str | None, tenant: str | None, as_json: bool) -> None:
    from .database import opened

    async with opened(db) as provider:
        listed = _stored(provider, scopes) if actor is None else _applying(provider, actor, tenant)
        if as_json:
            with json_array() as put:
                async for memory, beats in listed:
                    put(_members(memory) | _overrides(beats))
            return
        screen = console()
        count = 0
        async for memory, beats in listed:
            count += 1
            shown = _described(memory, beats)
            if screen.is_terminal:
                screen.print(shown, soft_wrap=True)
            else:
                write(f"{shown.plain}\n")
    if not count:
        note("nothing is on file there" if scopes or actor else "nothing is on file yet")


async def _stored(
    provider: "SqlMemoryProvider", scopes: list[str] | None
) -> "AsyncIterator[tuple[StoredMemory, tuple[OverriddenMemory, ...]]]":
    async for memory in provider.export(scopes=scopes):
        yield memory, ()


async def _applying(
    provider: "SqlMemoryProvider", actor: str, tenant: str | None
) -> "AsyncIterator[tuple[StoredMemory, tuple[OverriddenMemory, ...]]]":
    from ..memory import Memory
    from ..records import Actor
    from ..scopes import ScopeContext, default_scopes
    from ..stores import StoredMemory

    ctx = ScopeContext(actor=Actor(id=actor, tenant_ref=tenant))
    stored = {memory.record.id: memory async for memory in provider.export(scopes=default_scopes(ctx))}
    for entry in await Memory(provider).read_back(ctx):
        known = stored.get(entry.id) or StoredMemory(record=entry, created_at=entry.updated_at)
        yield replace(known, record=entry), entry.overrides


async def _publish(db: str, *, scope: str, key: str, text: str, by: str, as_json: bool) -> None:
    from ..memory import Memory
    from ..records import Actor
    from ..scopes import ScopeContext
    from ..stores import StoredMemory
    from ..text import shown_id, shown_scope
    from .database import opened

    async with opened(db, make=True) as provider:
        memory = Memory(provider, scopes=lambda _: [scope])
        ctx = ScopeContext(actor=Actor(id=by))
        outcome = await memory.publish(scope=scope, key=key, text=text, ctx=ctx, elevated=True)
        if outcome.record is None:
            raise Failure(outcome.error or "the fact was refused")
        stored = await provider.get(outcome.record.id)
    if as_json:
        known = stored or StoredMemory(record=outcome.record, created_at=outcome.record.updated_at)
        write_json(_members(replace(known, record=outcome.record)) | {"unchanged": outcome.unchanged})
        return
    did = "already on file" if outcome.unchanged else "replaced" if outcome.replaced is not None else "on file"
    sys.stdout.write(f"{did} at [{shown_scope(scope)}]: {shown_id(outcome.record.id)}\n")


async def _forget(db: str, id: str, *, actor: str, tenant: str | None, as_json: bool) -> None:  # noqa: A002  # the record's own field name
    from ..memory import Memory
    from ..records import Actor
    from ..scopes import ScopeContext
    from .database import opened

    async with opened(db) as provider:
        ctx = ScopeContext(actor=Actor(id=actor, tenant_ref=tenant))
        outcome = await Memory(provider).forget(id, ctx)
    if not outcome.ok:
        raise Failure(outcome.reason)
    if as_json:
        write_json({"forgotten": True})
    else:
        sys.stdout.write("forgotten\n")


async def _forget_all(db: str, *, actor: str) -> int:
    from ..memory import Memory
    from ..records import Actor
    from ..scopes import ScopeContext
    from .database import opened

    async with opened(db) as provider:
        return await Memory(provider).forget_all(ScopeContext(actor=Actor(id=actor)))


async def _erase(db: str, scope: str) -> int:
    from .database import opened

    async with opened(db) as provider:
        return await provider.erase(scope=scope, elevated=True)


def _tell_count(count: int, *, as_json: bool) -> None:
    if as_json:
        write_json({"forgotten": count})
    else:
        write(f"{counted(count, 'fact')} forgotten\n")


def make_sure(question: str) -> None:
    """Ask before something is deleted for good.

    Raises:
        Failure: It is not to be deleted, or nobody can be asked.
    """
    stdin = cast("TextIO | None", sys.stdin)
    if stdin is None or not stdin.isatty():
        msg = "deleting cannot be undone; say --yes where nobody can be asked"
        raise Failure(msg)
    if not typer.confirm(question, err=True):
        msg = "nothing was deleted"
        raise Failure(msg)


def _members(memory: "StoredMemory") -> dict[str, Any]:
    from ..wire.lines import line_members

    return line_members(memory.record, created_at=memory.created_at, expires_at=memory.expires_at)


def _overrides(beats: "tuple[OverriddenMemory, ...]") -> dict[str, Any]:
    if not beats:
        return {}
    return {"overrides": [{"id": b.id, "scope": b.scope, "text": b.text, "author": b.author} for b in beats]}


def _described(memory: "StoredMemory", beats: "tuple[OverriddenMemory, ...]") -> "Text":
    """Show a fact as the block does, with what only a person needs to know on the line below."""
    from rich.text import Text

    from ..text import shown_id, shown_scope, shown_text

    record = memory.record
    said = "a person" if record.origin.author == "human" else "the agent"
    about = [f"by {said}", f"{record.updated_at:%Y-%m-%d %H:%M}"]
    about += ["pinned"] if record.pinned else []
    about += [f"not read from {memory.expires_at:%Y-%m-%d %H:%M} on"] if memory.expires_at else []
    about += [shown_id(record.id)]
    lines = Text.assemble(
        (f"[{shown_scope(record.scope)}] ", "cyan"),
        (shown_text(record.key), "bold"),
        f": {shown_text(record.text)}",
        (f"\n    {', '.join(about)}", "dim"),
    )
    for beaten in beats:
        stated = "a person stated" if beaten.author == "human" else "instead has"
        lines.append(f"\n    ↳ [{shown_scope(beaten.scope)}] {stated}: {shown_text(beaten.text)}", "yellow")
    return lines
