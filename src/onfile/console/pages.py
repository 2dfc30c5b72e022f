"""The routes of the console: what is on file, deleting one fact, a turn, recording one fact."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from ..digest import DigestEntry
from ..ids import new_id
from ..memory import Memory
from ..records import Actor
from ..scopes import ScopeContext, actor_scope, resolve_scopes
from .turns import Turns
from .views import beaten_view, counted, entry_view, grouped, legible

_SAID = {
    "forgotten": "Deleted. It is no longer on file.",
    "missing": "That fact was not on file any more, so there was nothing to delete.",
    "expired": "That turn is no longer kept here. Send the message again.",
}
_HEADINGS = {401: "The token is missing", 404: "No such page", 500: "Out of reach"}


class Pages:
    """The console's pages over one memory."""

    def __init__(self, memory: Memory, *, actors: Sequence[Actor], title: str) -> None:
        """Show `memory` to the operator, who may look as any of `actors` or as anyone they name."""
        self._memory = memory
        self._actors = tuple(actors)
        self._turns = Turns(memory)
        self._templates = Environment(
            loader=PackageLoader("onfile.console"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals["brand"] = title  # pyright: ignore[reportArgumentType]  # jinja2 types only its own defaults

    def routes(self) -> list[Route]:
        """Answer the routes to mount."""
        return [
            Route("/", self.on_file, methods=["GET"]),
            Route("/choose", self.choose, methods=["GET"]),
            Route("/forget", self.confirm, methods=["GET"]),
            Route("/forget", self.forget, methods=["POST"]),
            Route("/turn", self.turn, methods=["GET"]),
            Route("/turn", self.take_turn, methods=["POST"]),
            Route("/turn/remember", self.remember, methods=["POST"]),
        ]

    def chosen(self, request: Request) -> Actor | None:
        """Answer the actor that the address names, else the first one known, else None."""
        named = request.query_params.get("actor", "")
        if named:
            return Actor(id=named, tenant_ref=request.query_params.get("tenant") or None)
        return self._actors[0] if self._actors else None

    async def choose(self, request: Request) -> Response:
        """Turn the form's choice into the address that shows it."""
        page = "/turn" if request.query_params.get("page") == "turn" else "/"
        typed = request.query_params.get("actor", "").strip()
        if typed:
            return _see(page, Actor(id=typed, tenant_ref=request.query_params.get("tenant", "").strip() or None))
        return _see(page, _read_actor(request.query_params.get("known", "")))

    async def on_file(self, request: Request) -> Response:
        """Show everything that is on file about the chosen actor."""
        actor = self.chosen(request)
        if actor is None:
            return self._render("on_file.html", page="file", actor=None, said="", groups=[], counts=None)
        ctx = ScopeContext(actor=actor)
        entries = await self._memory.read_back(ctx)
        scopes = await resolve_scopes(self._memory.scopes, ctx)
        return self._render(
            "on_file.html",
            page="file",
            actor=actor,
            said=_SAID.get(request.query_params.get("said", ""), ""),
            groups=grouped(entries, scopes=scopes, actor=actor),
            counts=counted(entries, actor),
        )

    async def confirm(self, request: Request) -> Response:
        """Ask once before deleting, and say what applies afterwards."""
        actor = self.chosen(request)
        if actor is None:
            return _see("/", None)
        return await self._confirm(actor, request.query_params.get("fact", ""), refusal="", status=200)

    async def forget(self, request: Request) -> Response:
        """Delete one fact of the actor's own."""
        form = await _fields(request)
        actor = _named(form)
        if actor is None:
            return _see("/", None)
        record_id = form.get("fact", "")
        outcome = await self._memory.forget(record_id, ScopeContext(actor=actor))
        if outcome.status == "forbidden":
            return await self._confirm(actor, record_id, refusal=outcome.reason, status=403)
        return _see("/", actor, said="forgotten" if outcome.status == "forgotten" else "missing")

    async def turn(self, request: Request) -> Response:
        """Show a turn that was taken, or the empty form."""
        run_id = request.query_params.get("run")
        taken = self._turns.get(run_id) if run_id else None
        actor = taken.actor if taken else self.chosen(request)
        said = request.query_params.get("said", "expired" if run_id and not taken else "")
        return self._render(
            "turn.html",
            page="turn",
            actor=actor,
            said=_SAID.get(said, ""),
            turn=taken,
            own=legible(actor_scope(actor)) if actor else "",
            call_id=new_id("call_"),
            max_fact_chars=self._memory.max_fact_chars,
            max_key_chars=self._memory.max_key_chars,
            max_memories=self._memory.max_memories,
        )

    async def take_turn(self, request: Request) -> Response:
        """Offer the actor's memory for the message that was sent."""
        form = await _fields(request)
        actor = _named(form)
        if actor is None:
            return _see("/turn", None)
        taken = await self._turns.take(actor, form.get("message", ""))
        return _see("/turn", actor, run=taken.id)

    async def remember(self, request: Request) -> Response:
        """Record a fact in a turn, as the model would."""
        form = await _fields(request)
        taken = self._turns.get(form.get("run", ""))
        if taken is None:
            return _see("/turn", _named(form), said="expired")
        call_id = form.get("call") or new_id("call_")
        await self._turns.remember(taken, key=form.get("key", ""), fact=form.get("fact", ""), call_id=call_id)
        return _see("/turn", taken.actor, run=taken.id, fragment="calls")

    def refuse(self, request: Request, status: int, words: str) -> Response:
        """Say no with a page."""
        del request
        heading = _HEADINGS.get(status, "Refused")
        return self._render("refused.html", status=status, page="", actor=None, heading=heading, words=words)

    async def _confirm(self, actor: Actor, record_id: str, *, refusal: str, status: int) -> Response:
        entries = await self._memory.read_back(ScopeContext(actor=actor))
        found = _holding(entries, record_id)
        if found is None:
            return _see("/", actor, said="missing")
        own = actor_scope(actor)
        entry = entry_view(found, actor)
        beaten = [beaten_view(value, own=own) for value in found.overrides]
        return self._render(
            "forget.html",
            status=status,
            page="",
            actor=actor,
            entry=entry,
            value=next((value for value in beaten if value.id == record_id), entry),
            next=beaten[0] if beaten and found.id == record_id else None,
            record_id=record_id,
            refusal=legible(refusal),
        )

    def _render(self, template: str, *, status: int = 200, actor: Actor | None, **shown: Any) -> Response:
        body = self._templates.get_template(template).render(
            actor=actor,
            who=_query(actor),
            actors=self._choices(actor),
            **shown,
        )
        return HTMLResponse(body.encode("utf-8", "replace"), status_code=status)

    def _choices(self, actor: Actor | None) -> list[tuple[str, str, bool]]:
        """Answer the select's options: value, words, whether it is the chosen one."""
        known = self._actors if actor is None or actor in self._actors else (*self._actors, actor)
        return [(_write_actor(one), _spell(one), one == actor) for one in known]


def _see(page: str, actor: Actor | None, *, fragment: str = "", **query: str) -> Response:
    # 303, so that reloading the page that follows does not send the form again.
    parts = "&".join(part for part in (_query(actor), urlencode(query)) if part)
    url = page + (f"?{parts}" if parts else "") + (f"#{fragment}" if fragment else "")
    return RedirectResponse(url, status_code=303)


def _query(actor: Actor | None) -> str:
    if actor is None:
        return ""
    tenant = {"tenant": actor.tenant_ref} if actor.tenant_ref else {}
    return urlencode({"actor": actor.id, **tenant}, quote_via=quote, errors="replace")


def _spell(actor: Actor) -> str:
    return legible(f"{actor.id}, {actor.tenant_ref}" if actor.tenant_ref else actor.id)


def _write_actor(actor: Actor) -> str:
    # One option's value has to carry both, and either may contain any character.
    return json.dumps([actor.id, actor.tenant_ref])


def _read_actor(value: str) -> Actor | None:
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


def _holding(entries: Sequence[DigestEntry], record_id: str) -> DigestEntry | None:
    """Find the entry that a record stands in, as the winner or as a beaten value."""
    return next(
        (entry for entry in entries if record_id in {entry.id, *(beaten.id for beaten in entry.overrides)}), None
    )


async def _fields(request: Request) -> dict[str, str]:
    async with request.form() as form:
        return {name: value for name, value in form.items() if isinstance(value, str)}


def _named(form: dict[str, str]) -> Actor | None:
    name = form.get("actor", "")
    return Actor(id=name, tenant_ref=form.get("tenant") or None) if name else None
