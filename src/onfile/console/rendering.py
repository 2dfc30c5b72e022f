"""The frame that every page of the console has: its templates, and whom the operator looks as."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from ..records import Actor
from .address import query_of, spell, write_actor

_HEADINGS = {401: "The token is missing", 404: "No such page", 500: "Out of reach"}


class Rendering:
    """Renders the console's templates for one title and one list of actors."""

    def __init__(self, *, actors: Sequence[Actor], title: str) -> None:
        """Offer `actors` in the list of every page."""
        self._actors = tuple(actors)
        self._templates = Environment(
            loader=PackageLoader("onfile.console"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals["brand"] = title  # pyright: ignore[reportArgumentType]  # jinja2 types only its own defaults

    def chosen(self, request: Request) -> Actor | None:
        """Answer the actor that the address names, else the first one known, else None."""
        name = request.query_params.get("actor", "")
        if name:
            return Actor(id=name, tenant_ref=request.query_params.get("tenant") or None)
        return self._actors[0] if self._actors else None

    def render(self, template: str, *, status: int = 200, actor: Actor | None, **shown: Any) -> Response:
        """Render a page about an actor."""
        body = self._templates.get_template(template).render(
            actor=actor,
            who=query_of(actor),
            actors=self._choices(actor),
            **shown,
        )
        return HTMLResponse(body.encode("utf-8", "replace"), status_code=status)

    def refuse(self, request: Request, status: int, words: str) -> Response:
        """Say no with a page."""
        del request
        heading = _HEADINGS.get(status, "Refused")
        return self.render("refused.html", status=status, page="", actor=None, heading=heading, words=words)

    def _choices(self, actor: Actor | None) -> list[tuple[str, str, bool]]:
        """Answer the select's options: value, words, whether it is the chosen one."""
        known = self._actors if actor is None or actor in self._actors else (*self._actors, actor)
        return [(write_actor(one), spell(one), one == actor) for one in known]
