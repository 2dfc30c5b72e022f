"""`onfile db hnsw`: an approximate index for scopes whose vectors PostgreSQL compares."""

from typing import TYPE_CHECKING, Annotated

import typer

from .loop import finish
from .options import AsJson, Database
from .output import counted, note, write, write_json
from .transfer import progress_bar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..stores.hnsw import Indexed


def hnsw(
    *,
    drop: Annotated[bool, typer.Option("--drop", help="Remove the index; searches are exact again.")] = False,
    as_json: AsJson = False,
    db: Database = "",
) -> None:
    """Index pgvector's vectors, so that a search of a very large scope is quick and no longer exact.

    Only scopes of more than 50,000 facts use it; see docs/recall.md for what it costs in recall. It is made
    while others read and write, one index for each embedding model.

    Example: [bold]onfile db hnsw --db postgresql://onfile@localhost/facts[/]
    """
    if drop:
        dropped = finish(_drop(db))
        if as_json:
            write_json({"dropped": dropped})
        else:
            write(f"indexes dropped: {dropped}\n")
        return
    indexed = finish(_build(db))
    if as_json:
        write_json(
            [
                {"model": o.model, "dimensions": o.dimensions, "vectors": o.vectors, "refused": o.refused}
                for o in indexed
            ]
        )
    elif not indexed:
        note("there are no vectors to index; 'onfile reindex' makes them")
    for one in () if as_json else indexed:
        size = f"{counted(one.vectors, 'vector')} of {one.dimensions} dimensions by {one.model}"
        write(f"not indexed: {size}: {one.refused}\n" if one.refused else f"indexed: {size}\n")


async def _build(db: str) -> "Sequence[Indexed]":
    from ..stores.hnsw import build
    from .database import opened

    async with opened(db) as provider:
        with progress_bar() as progress:
            task = progress.add_task("Indexing", total=None)

            def tell(done: int, total: int) -> None:
                progress.update(task, completed=done, total=total)

            return await build(provider.engine, tell=tell)


async def _drop(db: str) -> int:
    from ..stores.hnsw import drop
    from .database import opened

    async with opened(db) as provider:
        return await drop(provider.engine)
