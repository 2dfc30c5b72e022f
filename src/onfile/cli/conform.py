"""`onfile conform`: whether a provider of yours keeps the contract that every provider keeps."""

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .failures import Failure
from .loop import finish
from .options import AsJson, explained
from .output import console, counted, note, write_json

if TYPE_CHECKING:
    from ..testing import ClauseResult, ConformReport

_STYLES = {"passed": "green", "failed": "bold red", "skipped": "dim"}


def add_to(application: typer.Typer) -> None:
    """Add the commands of this module."""
    application.command("conform", help=explained(conform), rich_help_panel="For developers")(conform)


def conform(
    factory: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:NAME",
            help="A callable that answers a fresh, empty provider each time; it may be async or a context manager.",
            show_default=False,
        ),
    ],
    *,
    as_json: AsJson = False,
) -> None:
    """Try every clause of the provider contract on a provider, each on a fresh one.

    A clause about something that the provider does not claim to do is skipped, and says so. The exit code is 1
    when a clause fails. The current directory is on the import path.

    Example: [bold]onfile conform my.app:make_provider[/]
    """
    made = loaded(factory)
    report = finish(_conform(made, show=sys.stderr.isatty() and not as_json))
    if as_json:
        write_json(
            {
                "passed": report.passed,
                "failed": report.failed,
                "skipped": report.skipped,
                "results": [_members(result) for result in report.results],
            }
        )
    elif (reason := _one_reason(report)) is not None:
        note(f"onfile: no clause could be tried, all {report.failed} for one reason: {reason}")
    else:
        _print_table(report)
    if report.failed:
        raise typer.Exit(1)


async def _conform(made: Callable[[], Any], *, show: bool) -> "ConformReport":
    from ..testing import CLAUSES
    from ..testing import conform as try_all

    if not show:
        return await try_all(made)
    from rich.progress import Progress

    with Progress(console=console(errors=True), transient=True) as progress:
        task = progress.add_task("Clauses", total=len(CLAUSES))
        return await try_all(made, on_result=lambda _: progress.advance(task))


def loaded(factory: str) -> Callable[[], Any]:
    """Import what MODULE:NAME names, from the current directory too."""
    module_name, colon, name = factory.partition(":")
    if not (module_name and colon and name):
        msg = "name the factory as MODULE:NAME, such as my.app:make_provider"
        raise Failure(msg)
    # As uvicorn does: whoever writes a provider runs this beside it.
    sys.path.insert(0, os.getcwd())
    try:
        found: Any = import_module(module_name)
    except Exception as error:  # noqa: BLE001  # somebody's module may raise anything when it is imported
        msg = f"{module_name} cannot be imported: {type(error).__name__}: {error}"
        raise Failure(msg) from None
    try:
        for step in name.split("."):
            found = getattr(found, step)
    except AttributeError:
        msg = f"{module_name} has no {name}"
        raise Failure(msg) from None
    if not callable(found):
        msg = f"{factory} is a {type(found).__name__}; it must be a callable that answers a fresh one each time"
        raise Failure(msg)
    return found


def _one_reason(report: "ConformReport") -> str | None:
    """Answer why all clauses failed where it is the same reason: the factory's, and no clause's."""
    reasons = {result.reason for result in report.results}
    return reasons.pop() if len(reasons) == 1 and not report.passed else None


def _members(result: "ClauseResult") -> dict[str, str]:
    return {
        "clause": result.clause.name,
        "capability": result.clause.capability,
        "status": result.status,
        "reason": result.reason,
    }


def _print_table(report: "ConformReport") -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("capability", "clause", "result"):
        table.add_column(heading, overflow="fold")
    for result in report.results:
        told = f"{result.status}: {result.reason}" if result.reason else result.status
        table.add_row(result.clause.capability, result.clause.name, told, style=_STYLES[result.status])
    screen = console()
    screen.print(table)
    screen.print(
        f"{counted(report.passed, 'clause')} passed, {report.failed} failed, {report.skipped} skipped",
        style=_STYLES["failed" if report.failed else "passed"],
    )
