"""An embedder that a command is given by name, and the facts that have no vector of it yet."""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from .conform import loaded
from .failures import Failure

if TYPE_CHECKING:
    from rich.progress import Progress

    from ..recall import Embedder
    from ..stores import SqlMemoryProvider

EmbedderName = Annotated[
    str | None,
    typer.Option(
        "--embedder",
        metavar="MODULE:NAME",
        help="A callable that answers the embedder your application uses. The current directory is on the import path.",
    ),
]


def embedder_named(name: str | None) -> "Embedder | None":
    """Answer the embedder that MODULE:NAME makes, or None for none."""
    if name is None:
        return None
    if find_spec("numpy") is None:
        msg = "vectors need numpy: pip install 'onfile[vectors]'"
        raise Failure(msg)
    from ..recall import Embedder

    make = loaded(name)
    try:
        made = make()
    except Exception as error:  # noqa: BLE001  # somebody's factory may raise anything
        msg = f"{name} made no embedder: {type(error).__name__}: {error}"
        raise Failure(msg) from None
    if not isinstance(made, Embedder):
        msg = (
            f"{name} answered no embedder; it must answer an object with model, dimensions, embed_query "
            "and embed_documents"
        )
        raise Failure(msg)
    return made


async def embed_missing(provider: "SqlMemoryProvider", progress: "Progress") -> int:
    """Give every fact that lacks one its vector, and answer how many got one."""
    done = 0
    task = progress.add_task("Embedding", total=None)
    async for step in provider.reindex():
        done = step.done
        progress.update(task, completed=step.done, total=step.total)
    return done
