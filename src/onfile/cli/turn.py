"""`onfile turn`: the block that a model would get, byte for byte, and why each key is in it or not."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .loop import finish
from .options import ActorId, AsJson, Database, Tenant, explained, named_scopes
from .output import console, note, write, write_json

if TYPE_CHECKING:
    from ..digest import MemoryDigest
    from ..stores import SqlMemoryProvider
    from ..wire.why import WhyLine

_LEFT_OUT_SHOWN = 20


def add_to(application: typer.Typer) -> None:
    """Add the commands of this module."""
    application.command("turn", help=explained(turn), rich_help_panel="What a model sees")(turn)


def turn(
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="What the user writes in this turn; may be left out.")
    ] = "",
    *,
    actor: ActorId,
    tenant: Tenant = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            "--scope",
            metavar="SCOPE",
            help=(
                "The scopes of the turn instead of the actor's, the tenant's and global: repeat it, most specific "
                "first. Example: --scope actor:ana --scope depot:north --scope global"
            ),
            callback=named_scopes,
        ),
    ] = None,
    max_memories: Annotated[
        int, typer.Option("--max-memories", metavar="N", min=0, help="How many keys the block may hold.")
    ] = 20,
    why: Annotated[
        bool, typer.Option("--why", help="Add a table: each key, what it beat, and why it is in the block or not.")
    ] = False,
    as_json: AsJson = False,
    db: Database = "",
) -> None:
    """Print the block that a model would get in this turn, exactly.

    Standard output is the block and one line break; --why adds a table below it, --json gives the digest and the
    reasons instead.

    Example: [bold]onfile turn --actor ana --tenant acme "how do we label a pallet?" --why[/]
    """
    finish(
        _turn(
            db,
            text,
            actor=actor,
            tenant=tenant,
            scopes=scope,
            max_memories=max_memories,
            why=why,
            as_json=as_json,
        )
    )


async def _turn(
    db: str,
    text: str,
    *,
    actor: str,
    tenant: str | None,
    scopes: list[str] | None,
    max_memories: int,
    why: bool,
    as_json: bool,
) -> None:
    from ..memory import Memory
    from ..records import Actor
    from ..scopes import ScopeContext, default_scopes
    from .database import opened

    ctx = ScopeContext(actor=Actor(id=actor, tenant_ref=tenant))
    async with opened(db) as provider:
        applying = scopes if scopes is not None else default_scopes(ctx)
        memory = Memory(provider, scopes=lambda _: applying, max_memories=max_memories)
        digest = await memory.offer(ctx, query=text)
        lines = await _explained(provider, digest, ctx, text, max_memories) if why or as_json else []
    if as_json:
        from ..wire.digests import dump_digest

        write_json({"digest": dump_digest(digest), "why": [_why_members(line) for line in lines]})
        return
    write(memory.block(digest) + "\n")
    if why:
        write("\n")
        _print_table(lines)
    if not digest.entries:
        note("nothing on file applies to this turn" if not digest.omitted else "the ceiling leaves no place for a fact")


async def _explained(
    provider: "SqlMemoryProvider", digest: "MemoryDigest", ctx: Any, text: str, max_memories: int
) -> "list[WhyLine]":
    from ..provider import ListMemories, SearchMemories, can_search
    from ..wire.why import explain_digest

    on_file = await provider.list(ListMemories(scopes=digest.scopes, ctx=ctx))
    records = on_file
    if digest.recalled and can_search(provider):
        request = SearchMemories(scopes=digest.scopes, query=text.strip(), limit=max_memories, ctx=ctx)
        records = await provider.search(request)
    return explain_digest(
        records=records, scopes=digest.scopes, max_memories=max_memories, ranked=digest.recalled, on_file=on_file
    )


def _why_members(line: "WhyLine") -> dict[str, Any]:
    return {
        "id": line.id,
        "key": line.key,
        "text": line.text,
        "scope": line.scope,
        "author": line.author,
        "pinned": line.pinned,
        "beats": [{"id": b.id, "scope": b.scope, "text": b.text, "author": b.author} for b in line.beats],
        "included": line.included,
        "reason": line.reason,
    }


def _print_table(lines: "list[WhyLine]") -> None:
    from rich import box
    from rich.table import Table

    from ..text import shown_scope, shown_text

    kept = [line for line in lines if line.included]
    left_out = [line for line in lines if not line.included]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("in", "key", "scope", "author", "pinned", "beats", "why"):
        table.add_column(heading, overflow="fold")
    for line in [*kept, *left_out[:_LEFT_OUT_SHOWN]]:
        table.add_row(
            "yes" if line.included else "no",
            shown_text(line.key),
            shown_scope(line.scope),
            line.author,
            "yes" if line.pinned else "",
            "\n".join(f"[{shown_scope(beaten.scope)}] {shown_text(beaten.text)}" for beaten in line.beats),
            line.reason,
            style=None if line.included else "dim",
        )
    console().print(table)
    if len(left_out) > _LEFT_OUT_SHOWN:
        note(f"{len(left_out) - _LEFT_OUT_SHOWN:,} more keys are left out; --json lists them all")
