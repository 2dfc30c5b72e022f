"""`onfile recall` and `onfile reindex`: why a question finds what it finds, and vectors for facts that lack them."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .embedders import EmbedderName, embed_missing, embedder_named
from .failures import Failure
from .loop import finish
from .options import AsJson, Database, Tenant, explained, named_actor, named_scopes
from .output import console, counted, note, write, write_json
from .transfer import progress_bar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..recall import Embedder
    from ..stores.search import ExplainedKey

_OTHERS = 20


def add_to(application: typer.Typer) -> None:
    """Add the commands of this module."""
    application.command("recall", help=explained(recall), rich_help_panel="What a model sees")(recall)
    application.command("reindex", help=explained(reindex), rich_help_panel="Database")(reindex)


def recall(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What the user writes.", show_default=False)],
    *,
    actor: Annotated[
        str | None, typer.Option("--actor", metavar="ID", help="Whose turn it is, by id.", callback=named_actor)
    ] = None,
    tenant: Tenant = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            "--scope",
            metavar="SCOPE",
            help="The scopes instead of the actor's own; repeat it, most specific first.",
            callback=named_scopes,
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=0, help="How many keys are in.")] = 20,
    embedder: EmbedderName = None,
    as_json: AsJson = False,
    db: Database = "",
) -> None:
    """Explain a ranking: each key's place, its score by words and by vectors, and whether it is in.

    Without --embedder it ranks by words alone.

    Example: [bold]onfile recall "how do we label a pallet?" --actor ana --tenant acme[/]
    """
    if (actor is None) == (not scope):
        msg = "say for whom: --actor, or the scopes themselves with --scope, but not both"
        raise Failure(msg)
    if tenant is not None and actor is None:
        msg = "--tenant says where an actor acts; name the actor with --actor"
        raise Failure(msg)
    ranked = finish(_recall(db, text, scope or _scopes_of(actor or "", tenant), limit, embedder_named(embedder)))
    if as_json:
        write_json([_members(key) for key in ranked])
    elif not ranked:
        note("nothing is on file there")
    else:
        _print_table(ranked)


def reindex(
    *,
    embedder: Annotated[
        str,
        typer.Option(
            "--embedder",
            metavar="MODULE:NAME",
            help="A callable that answers the embedder your application uses, from the current directory.",
            show_default=False,
        ),
    ],
    as_json: AsJson = False,
    db: Database = "",
) -> None:
    """Give every fact that lacks one its vector. Broken off, it goes on where it stopped when it is run again.

    Example: [bold]onfile reindex --embedder my.app:make_embedder[/]
    """
    done = finish(_reindex(db, embedder_named(embedder)))
    if as_json:
        write_json({"embedded": done})
    else:
        write(f"{counted(done, 'fact')} embedded\n")


def _scopes_of(actor: str, tenant: str | None) -> "Sequence[str]":
    from ..records import Actor
    from ..scopes import ScopeContext, default_scopes

    return default_scopes(ScopeContext(actor=Actor(id=actor, tenant_ref=tenant)))


async def _recall(
    db: str, text: str, scopes: "Sequence[str]", limit: int, embedder: "Embedder | None"
) -> "Sequence[ExplainedKey]":
    from .database import opened

    async with opened(db, embedder=embedder) as provider:
        return await provider.explain(scopes=scopes, query=text, limit=limit, others=_OTHERS)


async def _reindex(db: str, embedder: "Embedder | None") -> int:
    from .database import opened

    async with opened(db, embedder=embedder) as provider:
        with progress_bar() as progress:
            return await embed_missing(provider, progress)


def _members(key: "ExplainedKey") -> dict[str, Any]:
    return {
        "rank": key.rank,
        "in": key.chosen,
        "key": key.records[0].key if key.records else None,
        "score": key.score,
        "lexical": key.lexical,
        "cosine": key.cosine,
        "pinned": key.pinned,
        "matched": key.matched,
        "records": [{"id": r.id, "scope": r.scope, "author": r.origin.author, "text": r.text} for r in key.records],
    }


def _print_table(ranked: "Sequence[ExplainedKey]") -> None:
    from rich import box
    from rich.table import Table

    from ..text import shown_scope, shown_text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("rank", "in", "key", "scope", "words", "vector", "why"):
        table.add_column(heading, overflow="fold")
    for key in ranked:
        first = key.records[0] if key.records else None
        why = "pinned" if key.pinned else "matches" if key.matched else "fills a place"
        table.add_row(
            str(key.rank),
            "in" if key.chosen else "out",
            shown_text(first.key) if first else "",
            shown_scope(first.scope) if first else "",
            f"{key.lexical:.3f}",
            "-" if key.cosine is None else f"{key.cosine:.3f}",
            why if key.chosen or key.matched else "left out",
        )
    console().print(table)
    sys.stdout.flush()
