"""Whose page it is: the actor in an address, in a form and in the list."""

from __future__ import annotations

import json
from typing import cast
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ..records import Actor
from .views import legible


def see(page: str, actor: Actor | None, *, fragment: str = "", **query: str) -> Response:
    """Send the browser to a page about an actor."""
    return RedirectResponse(address(page, actor, fragment=fragment, **query), status_code=303)


def address(page: str, actor: Actor | None, *, fragment: str = "", **query: str) -> str:
    """Answer the address of a page about an actor."""
    # With 303, so that reloading the page that follows does not send the form again.
    parts = "&".join(part for part in (query_of(actor), urlencode(query, errors="replace")) if part)
    return page + (f"?{parts}" if parts else "") + (f"#{fragment}" if fragment else "")


def query_of(actor: Actor | None) -> str:
    """Answer the part of an address that names an actor."""
    if actor is None:
        return ""
    tenant = {"tenant": actor.tenant_ref} if actor.tenant_ref else {}
    return urlencode({"actor": actor.id, **tenant}, quote_via=quote, errors="replace")


async def fields(request: Request) -> dict[str, str]:
    """Answer the text fields of a form."""
    async with request.form() as form:
        return {name: value for name, value in form.items() if isinstance(value, str)}


def named(form: dict[str, str]) -> Actor | None:
    """Answer the actor that a form names."""
    name = form.get("actor", "")
    return Actor(id=name, tenant_ref=form.get("tenant") or None) if name else None


def spell(actor: Actor) -> str:
    """Answer an actor in words."""
    return legible(f"{actor.id}, {actor.tenant_ref}" if actor.tenant_ref else actor.id)


def write_actor(actor: Actor) -> str:
    """Answer an actor as the value of one option, which has to carry both names; either may contain any character."""
    return json.dumps([actor.id, actor.tenant_ref])


def read_actor(value: str) -> Actor | None:
    """Read an option's value back; None for what is none."""
    try:
        parts = json.loads(value)
    except (ValueError, RecursionError):
        return None
    if not isinstance(parts, list):
        return None
    match cast("list[object]", parts):
        case [str(name), None | str() as tenant] if name:
            return Actor(id=name, tenant_ref=tenant or None)
        case _:
            return None
