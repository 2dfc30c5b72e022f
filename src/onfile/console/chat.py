"""The routes of the chat page: conversations, what a turn asks a person, and why it answered as it did."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from ..ids import new_id
from ..records import Actor
from ..runs.journal import Run, ThreadEntry
from ..runs.tools import read_questions
from ..scopes import actor_scope
from .address import address, fields, named, see
from .explained import explain_run
from .live import LiveTurn, LiveTurns, Work
from .rendering import Rendering
from .said import TurnView, turn_view
from .threads import open_turn
from .views import legible
from .watching import Tell
from .words import call_words

if TYPE_CHECKING:
    from ..runs.runner import TurnResult
    from .conversations import Conversations

NO_CONVERSATION = "There is no such conversation here."
NO_TURN = "There is no such turn here."
STREAM = "application/x-ndjson"
SHOWN_TURNS = 50
_A_MOMENT = 0.4
"""Seconds that a page waits for a turn it has to finish, so that a short one is whole at once."""
_SAID = {
    "decided": "That was answered before; the first answer holds.",
    "open": "Something is still open in this conversation; answer it first.",
    "blank": "Write something first.",
}


class ChatPages:
    """The chat page over conversations."""

    def __init__(self, conversations: Conversations, frame: Rendering) -> None:
        """Show conversations to the operator, in the frame that all pages share."""
        self._conversations = conversations
        self._frame = frame
        self._live = LiveTurns()

    def routes(self) -> list[Route]:
        """Answer the routes to mount."""
        return [
            Route("/chat", self.show, methods=["GET"]),
            Route("/chat", self.say, methods=["POST"]),
            Route("/chat/decide", self.decide, methods=["POST"]),
            Route("/chat/answer", self.answer, methods=["POST"]),
            Route("/chat/retry", self.retry, methods=["POST"]),
            Route("/chat/follow", self.follow, methods=["GET"]),
            Route("/chat/why", self.why, methods=["GET"]),
        ]

    async def stop(self) -> None:
        """Leave every turn under way to whoever comes next."""
        await self._live.stop()

    async def show(self, request: Request) -> Response:
        """Show a conversation, or the beginning of one, and finish what a process left open in it."""
        actor, thread_id = self._frame.chosen(request), request.query_params.get("thread", "")
        if actor is None:
            return self._frame.render("chat.html", page="chat", actor=None, notice="", said="")
        runs = await self._runs(thread_id, actor)
        if runs is None:
            return self._frame.refuse(request, 404, NO_CONVERSATION)
        turns = await self._turns(thread_id, runs)
        return self._frame.render(
            "chat.html",
            page="chat",
            actor=actor,
            notice=self._conversations.notice,
            said=_SAID.get(request.query_params.get("said", ""), ""),
            threads=await self._conversations.threads.of(actor),
            thread_id=thread_id,
            new_thread=thread_id or new_id("thr_"),
            new_run=new_id("run_"),
            turns=turns,
            earlier=len(runs) - len(turns),
            open=open_turn(runs),
        )

    async def say(self, request: Request) -> Response:
        """Take a message and answer it."""
        form = await fields(request)
        actor, thread_id, run_id = named(form), form.get("thread", ""), form.get("run", "")
        message = form.get("message", "").strip()
        if actor is None or not thread_id or not run_id:
            return see("/chat", actor)
        runs = await self._conversations.threads.runs(thread_id, actor)
        if runs is None:
            return self._frame.refuse(request, 404, NO_CONVERSATION)
        thread = {"thread": thread_id} if runs else {}
        if not message:
            return see("/chat", actor, **thread, said="blank")
        # The form has its run's id in it, so that sending it twice says it once.
        for run in runs:
            if run.id == run_id:
                return await self._carried_on(request, run)
        left = open_turn(runs)
        if left is not None and left.status != "failed":
            return see("/chat", actor, **thread, said="open")
        if await self._conversations.journal.get(run_id) is not None:
            return see("/chat", actor, **thread)

        def work(tell: Tell) -> Coroutine[Any, Any, TurnResult]:
            return self._conversations.say(message, actor=actor, thread_id=thread_id, run_id=run_id, tell=tell)

        return await self._answered(request, actor, thread_id, run_id, self._live.start(run_id, work))

    async def decide(self, request: Request) -> Response:
        """Approve or reject what a turn waits for, and carry it on."""
        form = await fields(request)
        run = await self._own_run(request, form)
        if isinstance(run, Response):
            return run
        approved = form.get("verdict") == "approve"
        runner = self._conversations.runner
        first = form.get("verdict") in ("approve", "reject") and await self._waits(run, form, "approval")
        if first:
            first = await runner.decide(
                run.id, form["call"], approved=approved, reason="" if approved else form.get("reason", "").strip()
            )
        return await self._carried_on(request, run, said="" if first else "decided")

    async def answer(self, request: Request) -> Response:
        """Answer what the model asked, and carry the turn on."""
        form = await fields(request)
        run = await self._own_run(request, form)
        if isinstance(run, Response):
            return run
        pending = await self._conversations.runner.pending(run.id)
        first = pending is not None and await self._waits(run, form, "answer")
        if first and pending is not None:
            asked = len(read_questions(pending.arguments))
            answers = [form.get(f"answer-{place}", "").strip() or None for place in range(asked)]
            first = await self._conversations.runner.answer(run.id, form["call"], answers)
        return await self._carried_on(request, run, said="" if first else "decided")

    async def retry(self, request: Request) -> Response:
        """Go on with a turn that failed."""
        run = await self._own_run(request, await fields(request))
        return run if isinstance(run, Response) else await self._carried_on(request, run)

    async def follow(self, request: Request) -> Response:
        """Send what happens in a turn under way, as it happens."""
        run = await self._own_run(request, dict(request.query_params))
        if isinstance(run, Response):
            return run
        live = self._live.get(run.id)
        page = address("/chat", run.ctx.actor, thread=run.ctx.thread_id or "")
        return Response(status_code=204) if live is None else _stream(_events(live, page))

    async def why(self, request: Request) -> Response:
        """Explain one turn from its journal."""
        run = await self._own_run(request, dict(request.query_params))
        if isinstance(run, Response):
            return run
        entries = await self._conversations.journal.read_thread(run.ctx.thread_id or "")
        return self._frame.render(
            "why.html",
            page="chat",
            actor=run.ctx.actor,
            own=legible(actor_scope(run.ctx.actor)),
            thread_id=run.ctx.thread_id,
            turn=turn_view(run, [entry for entry in entries if entry.run_id == run.id], None),
            answer=explain_run(await self._conversations.journal.checkpoints(run.id)),
        )

    async def _runs(self, thread_id: str, actor: Actor) -> Sequence[Run] | None:
        """Answer the runs of a conversation, what a process left open in it being carried on; None where there is none.

        Such a process may have been this server before it was killed.
        """
        if not thread_id:
            return ()
        runs = await self._conversations.threads.runs(thread_id, actor)
        left = open_turn(runs or ())
        if left is not None and left.status in ("ready", "running"):
            await self._live.start(left.id, self._taking_over(left.id)).settled(_A_MOMENT)
            runs = await self._conversations.threads.runs(thread_id, actor)
        return runs or None

    def _taking_over(self, run_id: str) -> Work:
        return lambda tell: self._conversations.take_over(run_id, tell=tell)

    async def _turns(self, thread_id: str, runs: Sequence[Run]) -> list[TurnView]:
        entries: dict[str, list[ThreadEntry]] = {}
        for entry in await self._conversations.journal.read_thread(thread_id) if runs else ():
            entries.setdefault(entry.run_id, []).append(entry)
        turns: list[TurnView] = []
        for run in runs[-SHOWN_TURNS:]:
            pending = await self._conversations.runner.pending(run.id) if run.status == "waiting" else None
            turns.append(turn_view(run, entries.get(run.id, []), pending))
        return turns

    async def _own_run(self, request: Request, form: dict[str, str]) -> Run | Response:
        """Answer a run of the actor's own, or the page that says there is none."""
        actor = named(form) or self._frame.chosen(request)
        run = await self._conversations.run_of(form.get("run", ""), actor) if actor is not None else None
        return run if run is not None else self._frame.refuse(request, 404, NO_TURN)

    async def _waits(self, run: Run, form: dict[str, str], kind: str) -> bool:
        pending = await self._conversations.runner.pending(run.id)
        return pending is not None and (pending.kind, pending.tool_call_id) == (kind, form.get("call", ""))

    async def _carried_on(self, request: Request, run: Run, *, said: str = "") -> Response:
        live = self._live.start(run.id, self._taking_over(run.id))
        return await self._answered(request, run.ctx.actor, run.ctx.thread_id or "", run.id, live, said=said)

    async def _answered(
        self, request: Request, actor: Actor, thread_id: str, run_id: str, live: LiveTurn, *, said: str = ""
    ) -> Response:
        """Send the turn as it happens to a script of ours, and otherwise the whole page once it is over."""
        page = address("/chat", actor, thread=thread_id, **({"said": said} if said else {}))
        if STREAM in request.headers.get("accept", ""):
            return _stream(_events(live, page))
        await live.settled()
        return see("/chat", actor, thread=thread_id, fragment=f"turn-{run_id}", **({"said": said} if said else {}))


def _stream(events: AsyncIterator[str]) -> Response:
    # A proxy that collects a response before it sends it would make streaming pointless.
    return StreamingResponse(events, media_type=STREAM, headers={"X-Accel-Buffering": "no"})


async def _events(live: LiveTurn, page: str) -> AsyncIterator[str]:
    """Spell out a turn's events, one JSON object a line, and where the page is that shows all of it."""
    async for event in live.follow():
        if event.kind == "text":
            yield _line({"text": event.text})
        else:
            words = call_words(event.tool, event.arguments, outcome=event.outcome, result=event.text)
            yield _line({"call": event.call_id, "words": words, "outcome": event.outcome})
    yield _line({"page": page, "failure": live.failure})


def _line(event: dict[str, Any]) -> str:
    return json.dumps(event) + "\n"
