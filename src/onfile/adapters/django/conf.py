"""The two settings: `ONFILE = {"MEMORY": "shop.assistant.memory", "ACTOR": "shop.assistant.actor"}`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, cast

from django.conf import settings
from django.http import HttpRequest
from django.utils.module_loading import import_string

from ...blocking import Blocking
from ...memory import Memory
from ...records import Actor


def configured_memory() -> Memory | Blocking:
    """Answer the host's memory: what `MEMORY` names, or one over this database.

    A `Memory` is awaited where the host's event loop runs; a `Blocking` serves WSGI on stores that
    are not Django's own.
    """
    named = _setting("MEMORY")
    return _default() if named is None else cast("Memory | Blocking", _named(named))


def actor_function() -> Callable[[HttpRequest], Actor | None]:
    """Answer what tells from a request who is signed in: the host's `ACTOR`, or the user by primary key."""
    named = _setting("ACTOR")
    return user_actor if named is None else cast("Callable[[HttpRequest], Actor | None]", _named(named))


def user_actor(request: HttpRequest) -> Actor | None:
    """Answer the signed-in user as an actor, by primary key; None for nobody."""
    user: Any = getattr(request, "user", None)
    return Actor(id=str(user.pk)) if user is not None and user.is_authenticated else None


@cache
def _default() -> Memory:
    from .provider import DjangoMemoryProvider

    return Memory(DjangoMemoryProvider())


def _setting(name: str) -> Any:
    return getattr(settings, "ONFILE", {}).get(name)


def _named(value: Any) -> Any:
    return import_string(value) if isinstance(value, str) else value
