"""The chat page where there is no chat: one sentence that says what is missing."""

from __future__ import annotations

from importlib.util import find_spec

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from .rendering import Rendering

INSTALL = "A conversation needs a few packages more: pip install 'onfile[server,runs]'"
NOT_GIVEN = "This server was started without an assistant: give create_app its conversations with chat=…"


class NoChat:
    """Stands where the chat page would be."""

    def __init__(self, frame: Rendering) -> None:
        """Show the sentence in the frame that all pages share."""
        self._frame = frame

    def routes(self) -> list[Route]:
        """Answer the route to mount."""
        return [Route("/chat", self.show, methods=["GET"])]

    async def stop(self) -> None:
        """Nothing is under way here."""

    async def show(self, request: Request) -> Response:
        """Say what is missing."""
        words = INSTALL if find_spec("pydantic_ai") is None else NOT_GIVEN
        return self._frame.render("no_chat.html", page="chat", actor=self._frame.chosen(request), words=words)
