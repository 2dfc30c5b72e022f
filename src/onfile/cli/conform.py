"""`onfile conform`: whether somebody's provider keeps the contract."""

import typer


def add_to(application: typer.Typer) -> None:
    """Add the commands of this module."""
