"""`onfile serve`: the pages and the routes on this machine, behind a token."""

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from .failures import Failure
from .loop import finish
from .options import DATABASE_VARIABLE, Database, Tenant, explained
from .output import note

if TYPE_CHECKING:
    from ..records import Actor
    from ..scopes import ScopeResolver

HOST, PORT = "127.0.0.1", 8377
_NEEDED = ("fastapi", "uvicorn", "jinja2", "python_multipart")
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


def add_to(application: typer.Typer) -> None:
    """Add the commands of this module."""
    application.command("serve", help=explained(serve), rich_help_panel="What a model sees")(serve)


def serve(
    *,
    demo: Annotated[
        bool,
        typer.Option(
            "--demo", help="Show an invented freight company, in a database of its own that ends with the server."
        ),
    ] = False,
    actor: Annotated[
        list[str] | None,
        typer.Option("--actor", metavar="ID", help="A person to offer in the pages' list; repeat it for several."),
    ] = None,
    tenant: Tenant = None,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="The address to listen on.")] = HOST,
    port: Annotated[
        int, typer.Option("--port", metavar="PORT", min=0, max=65535, help="The port; 0 takes a free one.")
    ] = PORT,
    browse: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    db: Database = "",
) -> None:
    """Serve the pages on this machine: what is on file about a person, and what a turn of theirs would read.

    It prints one address with a token in it; without the token nothing is shown. Ctrl-C ends it.

    Example: [bold]onfile serve --demo[/]
    """
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        msg = "the server needs a few packages more: pip install 'onfile[server]'"
        raise Failure(msg)
    if demo and db and db != os.environ.get(DATABASE_VARIABLE):
        msg = "--demo keeps its facts in a database of its own; leave --db out, or leave --demo out"
        raise Failure(msg)
    import signal
    from tempfile import TemporaryDirectory

    free = _free_port(host, port)
    signal.signal(signal.SIGTERM, _end)
    with ExitStack() as stack:
        if demo:
            folder = stack.enter_context(TemporaryDirectory(prefix="onfile-demo-"))
            db = str(Path(folder) / "demo.db")
            note("The demo's facts are invented and its database is temporary: it is deleted when the server ends.")
        actors = finish(_ready(db, demo=demo, actors=actor or [], tenant=tenant))
        if host not in _LOOPBACK:
            note("Whoever can reach this machine and has the address below can read and delete what is on file.")
        _run(db, actors, demo=demo, host=host, port=free, browse=browse)


def _end(signum: int, frame: object) -> NoReturn:  # noqa: ARG001  # the signature of a signal handler
    # As if Ctrl-C had been pressed, so that the temporary database is deleted.
    raise KeyboardInterrupt


def _free_port(host: str, port: int) -> int:
    """Answer the port to listen on, or say plainly that it cannot be had."""
    import socket

    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            return int(probe.getsockname()[1])
    except OSError as error:
        msg = f"cannot listen on {host} port {port} ({error.strerror}); choose another with --host or --port 0"
        raise Failure(msg) from None


async def _ready(db: str, *, demo: bool, actors: list[str], tenant: str | None) -> "list[Actor]":
    """Set the database up before the server starts, so that what is wrong is told in one sentence."""
    from ..records import Actor
    from ..scopes import check_actor
    from .database import opened

    named = [Actor(id=name, tenant_ref=tenant) for name in actors]
    for one in named:
        check_actor(one)
    async with opened(db, make=True) as provider:
        if demo:
            from ..demo import load_demo

            return [*named, *await load_demo(provider)]
    return named


def _run(db: str, actors: "list[Actor]", *, demo: bool, host: str, port: int, browse: bool) -> None:
    import secrets

    from ..console.app import create_app, run_server
    from ..demo import demo_scopes
    from ..memory import Memory
    from ..scopes import default_scopes
    from ..stores import SqlMemoryProvider
    from .database import place_of

    # A second provider: connections belong to the event loop that opened them, and the server has its own.
    provider = SqlMemoryProvider.from_url(place_of(db).url)
    resolver: ScopeResolver = demo_scopes if demo else default_scopes
    token = secrets.token_urlsafe(24)
    title = "onfile demo" if demo else "onfile"
    app = create_app(Memory(provider, scopes=resolver), token=token, actors=actors, title=title)

    @asynccontextmanager
    async def closing(app: Any) -> AsyncGenerator[None]:  # noqa: ARG001  # the signature of a lifespan
        yield
        await provider.aclose()

    app.router.lifespan_context = closing
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{port}/?token={token}"
    sys.stdout.write(f"{address}\n")
    sys.stdout.flush()
    if browse:
        import threading
        import webbrowser

        opening = threading.Timer(1, webbrowser.open, [address])
        opening.daemon = True
        opening.start()
    run_server(app, host=host, port=port)
