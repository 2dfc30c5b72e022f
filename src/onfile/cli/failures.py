"""What went wrong, as one sentence for the person at the terminal: no traceback, no fact, no password."""

from __future__ import annotations

from typing import Any

from ..errors import OnfileError, WriteRefused

NEEDED = frozenset({"typer", "rich", "platformdirs"})
_OF_DATABASES = frozenset({"sqlalchemy", "sqlite3", "asyncpg", "psycopg", "asyncmy"})
INSTALL = "the command needs a few packages more than the library: pip install 'onfile[cli]'"


class Failure(Exception):  # noqa: N818  # a sentence, told to the person and not raised past the command line
    """A command cannot be done; its message is the sentence that says why and what to do."""


def sentence(error: Exception) -> str:
    """Answer the one line that tells a person what an exception means."""
    return " ".join(_words(error).split())


def _words(error: Exception) -> str:
    if isinstance(error, WriteRefused):
        return error.reason
    if isinstance(error, Failure | OnfileError):
        return str(error)
    usage: Any = getattr(error, "format_message", None)
    if callable(usage):
        return _usage(error, str(usage()))
    if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] in NEEDED:
        return INSTALL
    if type(error).__module__.partition(".")[0] in _OF_DATABASES:
        # What passes a store: a connection that broke, a file that may not be written to.
        from .database import why_unusable

        return f"the database could not do it: {why_unusable(error)}"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    # Never `str(error)`: a driver's words may quote the row that it could not keep.
    return (
        f"something unforeseen went wrong ({type(error).__name__}); "
        "set ONFILE_DEBUG=1 and try again to see where, and report it"
    )


def _usage(error: Exception, words: str) -> str:
    context: Any = getattr(error, "ctx", None)
    if context is None:
        return words
    see = f"see '{context.command_path} --help'"
    # A question, "Did you mean 'list'?", keeps its mark.
    return f"{words} Or {see}" if words.endswith("?") else f"{words.rstrip('.')}; {see}"
