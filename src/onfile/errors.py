"""What onfile raises: a broken promise is an exception, a refusal is a value."""

from __future__ import annotations


class OnfileError(Exception):
    """Catch this to catch everything that onfile raises on purpose.

    No message holds a key, a fact or a scope token: errors travel into logs.
    """


class ScopeError(OnfileError, ValueError):
    """A scope resolver or an actor named no usable scope, so nothing was read or written."""


class WriteRefused(OnfileError):  # noqa: N818  # a fixed public name: it says what happened, and it is no fault
    """A store said no to one write; `reason` says why, in words a model or a person can act on.

    The words may name a key and a scope, so they stay out of `str()` and `repr()`: a traceback
    that reaches a log tells that a write was refused, never what it was about.
    """

    def __init__(self, reason: str) -> None:
        super().__init__("the store refused the write; its reason is in .reason")
        self.reason = reason


class StoreError(OnfileError):
    """A database could not do what a store asked; the message says what to do about it."""
