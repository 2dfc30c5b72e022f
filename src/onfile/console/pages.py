"""The routes of the console: what is on file, deleting one fact, a turn, recording one fact."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..digest import DigestEntry
from ..ids import new_id
from ..memory import Memory
from ..records import Actor
from ..scopes import ScopeContext, actor_scope, resolve_scopes
from .address import fields, named, read_actor, see
from .rendering import Rendering
from .turns import Turns
from .views import beaten_view, counted, entry_view, grouped, legible

_PAGES = {"turn": "/turn", "chat": "/chat"}
_SAID = {
    "forgotten": "Deleted. It is no longer on file.",
    "missing": "That fact was not on file any more, so there was nothing to delete.",
    "expired": "That turn is no longer kept here. Send the message again.",
}


class Pages:
    """The console's pages over one memory."""

    def __init__(self, memory: Memory, frame: Rendering) -> None:
        """Show `memory` to the operator, in the frame that all pages share."""
        self._memory = memory
        self._frame = frame
        self._turns = Turns(memory)

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

    async def choose(self, request: Request) -> Response:
        """Turn the form's choice into the address that shows it."""
        page = _PAGES.get(request.query_params.get("page", ""), "/")
        typed = request.query_params.get("actor", "").strip()
        if typed:
            return see(page, Actor(id=typed, tenant_ref=request.query_params.get("tenant", "").strip() or None))
        return see(page, read_actor(request.query_params.get("known", "")))

    async def on_file(self, request: Request) -> Response:
        """Show everything that is on file about the chosen actor."""
        actor = self._frame.chosen(request)
        if actor is None:
            return self._frame.render("on_file.html", page="file", actor=None, said="", groups=[], counts=None)
        ctx = ScopeContext(actor=actor)
        entries = await self._memory.read_back(ctx)
        scopes = await resolve_scopes(self._memory.scopes, ctx)
        return self._frame.render(
            "on_file.html",
            page="file",
            actor=actor,
            said=_SAID.get(request.query_params.get("said", ""), ""),
            groups=grouped(entries, scopes=scopes, actor=actor),
            counts=counted(entries, actor),
        )

    async def confirm(self, request: Request) -> Response:
        """Ask once before deleting, and say what applies afterwards."""
        actor = self._frame.chosen(request)
        if actor is None:
            return see("/", None)
        return await self._confirm(actor, request.query_params.get("fact", ""), refusal="", status=200)

    async def forget(self, request: Request) -> Response:
        """Delete one fact of the actor's own."""
        form = await fields(request)
        actor = named(form)
        if actor is None:
            return see("/", None)
        record_id = form.get("fact", "")
        outcome = await self._memory.forget(record_id, ScopeContext(actor=actor))
        if outcome.status == "forbidden":
            return await self._confirm(actor, record_id, refusal=outcome.reason, status=403)
        return see("/", actor, said="forgotten" if outcome.status == "forgotten" else "missing")

    async def turn(self, request: Request) -> Response:
        """Show a turn that was taken, or the empty form."""
        run_id = request.query_params.get("run")
        taken = self._turns.get(run_id) if run_id else None
        actor = taken.actor if taken else self._frame.chosen(request)
        said = request.query_params.get("said", "expired" if run_id and not taken else "")
        return self._frame.render(
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
        form = await fields(request)
        actor = named(form)
        if actor is None:
            return see("/turn", None)
        taken = await self._turns.take(actor, form.get("message", ""))
        return see("/turn", actor, run=taken.id)

    async def remember(self, request: Request) -> Response:
        """Record a fact in a turn, as the model would."""
        form = await fields(request)
        taken = self._turns.get(form.get("run", ""))
        if taken is None:
            return see("/turn", named(form), said="expired")
        call_id = form.get("call") or new_id("call_")
        await self._turns.remember(taken, key=form.get("key", ""), fact=form.get("fact", ""), call_id=call_id)
        return see("/turn", taken.actor, run=taken.id, fragment="calls")

    async def _confirm(self, actor: Actor, record_id: str, *, refusal: str, status: int) -> Response:
        entries = await self._memory.read_back(ScopeContext(actor=actor))
        found = _holding(entries, record_id)
        if found is None:
            return see("/", actor, said="missing")
        own = actor_scope(actor)
        entry = entry_view(found, actor)
        beaten = [beaten_view(value, own=own) for value in found.overrides]
        return self._frame.render(
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


def _holding(entries: Sequence[DigestEntry], record_id: str) -> DigestEntry | None:
    """Find the entry that a record stands in, as the winner or as a beaten value."""
    return next(
        (entry for entry in entries if record_id in {entry.id, *(beaten.id for beaten in entry.overrides)}), None
    )
