"""The `onfile` command: its options, its commands and how it ends."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper
from typing import Annotated

import typer

from . import chat, conform, facts, flags, mcp, recall, runs, serve, transfer, turn
from . import db as database_commands
from .failures import sentence
from .options import Database, explained

INTERRUPTED = 130
FAILED = 2

application = typer.Typer(
    name="onfile",
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (transfer, facts, flags, turn, recall, chat, conform, serve, runs, mcp, database_commands):
    module.add_to(application)


def _print_version(wanted: bool) -> None:  # noqa: FBT001  # typer calls it with the option's value
    if wanted:
        from importlib.metadata import version

        sys.stdout.write(f"onfile {version('onfile')}\n")
        raise typer.Exit


def start(
    context: typer.Context,
    *,
    db: Database = "",
    version: Annotated[  # noqa: ARG001  # eager: its callback has answered before
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Keep facts for AI assistants on file: keyed, at scopes, with who said so.

    A newcomer's four: [bold]onfile import[/] FACTS.jsonl, [bold]onfile turn[/] --actor ana "your message",
    [bold]onfile list[/], [bold]onfile serve --demo[/].
    """
    context.obj = db
    if context.invoked_subcommand is None:
        sys.stdout.write(context.get_help() + "\n")


application.callback(invoke_without_command=True, help=explained(start))(start)


def run(arguments: Sequence[str] | None) -> int:
    """Run one command; whatever happens, end with an exit code and at most one sentence of complaint."""
    # A shell's `>&-` or a daemon starts us without a stream, and Python then has None in its place.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # open as long as the process
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # open as long as the process
    for stream in (sys.stdout, sys.stderr):
        # Facts are in every script, whatever the terminal's locale says; a block is the same bytes everywhere.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace", newline="\n")
    try:
        status = application(args=arguments, prog_name="onfile", standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough. Python would complain about the rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # the last line of defence; what it means is told in words
        if os.environ.get("ONFILE_DEBUG"):
            raise
        with suppress(OSError):
            sys.stdout.flush()
        sys.stderr.write(f"onfile: {sentence(error)}\n")
        return FAILED
    return status if isinstance(status, int) else 0
