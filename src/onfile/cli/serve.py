"""`onfile serve`: the pages and the routes on this machine."""

import typer


def add_to(application: typer.Typer) -> None:
    """Add the commands of this module."""
