"""The routes by which a person sees a run of theirs, and decides what it waits for."""

# No `from __future__ import annotations` here, for the reason that router.py gives.

import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import APIRouter, BackgroundTasks, Depends, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.convertors import Convertor, register_url_convertor
from starlette.responses import JSONResponse, Response

from ..records import Actor
from ..runs.journal import ENDED, Run, RunHeld
from ..runs.runner import TurnRunner
from ..scopes import ScopeContext
from ..wire.answers import NO_STORE
from .problems import documented, problem
from .signed_in import context_of

NOT_SIGNED_IN = "Sign in to see your conversations with the assistant."
NO_SUCH_RUN = "There is no such run of yours."
NO_SUCH_CALL = "This run has no such call to decide."
DECIDED = "This call was decided before; the first answer holds."
OVER = "This run has ended; there is nothing to decide any more."
NOT_A_DECISION = "This call waits for an approval: send `approved`, true or false."
NOT_AN_ANSWER = "This call waits for answers: send `answers`, a list with a string or null for each question, or null."

Allows = Callable[[Actor, Run], bool | Awaitable[bool]]
_log = logging.getLogger("onfile.runs")


class _AnyId(Convertor[str]):
    """An id as it is, slashes and line breaks included: a host gives the run's, and a model the call's."""

    regex = r"(?s:.*)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("onfile_any_id", _AnyId())


class Decision(BaseModel):
    """What a person decides: an approval of an action, or answers to questions."""

    model_config = ConfigDict(extra="forbid")

    approved: bool | None = Field(default=None, description="For an action: whether it may be done.")
    reason: str = Field(default="", max_length=2000, description="Told to the model when it may not.")
    answers: list[str | None] | None = Field(default=None, description="For questions, in their order; null skips one.")


class Decided(BaseModel):
    """The decision holds."""

    decided: bool = True


def runs_router(
    runner: TurnRunner, *, actor: Callable[..., Any], allows: Allows | None = None, resume: bool = True
) -> APIRouter:
    """Build the routes of runs, approvals and skills for your application.

    Args:
        runner: What carries the runs.
        actor: Your own dependency, which answers the `Actor` who is signed in; None answers 401.
        allows: Whether somebody else than the run's own actor may see and decide it, such as an
            administrator; unless given, nobody may.
        resume: Carry a decided run on in this process, once the answer is sent. Set it to False
            where a worker does that.
    """
    router = APIRouter(tags=["runs"])
    signed_in = Depends(actor)

    def caller(calling: Any, thread_id: str | None) -> ScopeContext | Response:
        if calling is None:
            return problem(401, NOT_SIGNED_IN)
        return context_of(calling, thread_id or None, asked=actor)

    async def visible(who: Actor, run_id: str) -> Run | None:
        run = await runner.engine.get(run_id)
        if run is None or who == run.ctx.actor:
            return run
        allowed = allows(who, run) if allows is not None else False
        return run if (await allowed if inspect.isawaitable(allowed) else allowed) else None

    @router.get(
        "/agent/runs/{run_id:onfile_any_id}",
        summary="Read how far a run got",
        responses=documented(unauthorized="Nobody is signed in.", not_found="There is no such run of yours."),
    )
    async def read_run(  # pyright: ignore[reportUnusedFunction]  # the decorator registers it
        run_id: str, calling: Annotated[Any, signed_in]
    ) -> Response:
        """Answer a run's state, what it said, and what it waits for a person to decide."""
        who = caller(calling, None)
        if isinstance(who, Response):
            return who
        if await visible(who.actor, run_id) is None:
            return problem(404, NO_SUCH_RUN)
        result = await runner.result(run_id)
        pending = None
        if result.pending is not None:
            pending = {
                "toolCallId": result.pending.tool_call_id,
                "kind": result.pending.kind,
                "tool": result.pending.tool,
                "arguments": result.pending.arguments,
            }
        body = {"id": run_id, "status": result.status, "text": result.text, "pending": pending}
        return JSONResponse(body, headers=NO_STORE)

    @router.post(
        "/agent/runs/{run_id:onfile_any_id}/tool-calls/{tool_call_id:onfile_any_id}/decision",
        summary="Decide what a run waits for",
        response_model=Decided,
        responses=documented(
            unauthorized="Nobody is signed in.",
            not_found="There is no such run of yours, or no such call.",
            conflict="It was decided before; the first answer holds.",
        ),
    )
    async def decide(  # pyright: ignore[reportUnusedFunction]  # the decorator registers it
        run_id: str,
        tool_call_id: str,
        decision: Decision,
        background: BackgroundTasks,
        calling: Annotated[Any, signed_in],
    ) -> Response:
        """Approve or reject an action, or answer the model's questions; the first answer wins."""
        who = caller(calling, None)
        if isinstance(who, Response):
            return who
        run = await visible(who.actor, run_id)
        if run is None:
            return problem(404, NO_SUCH_RUN)
        pending = await runner.pending(run_id)
        if pending is None or pending.tool_call_id != tool_call_id:
            return await _settled(runner, run, tool_call_id)
        if pending.kind == "approval":
            if decision.approved is None:
                return problem(422, NOT_A_DECISION)
            first = await runner.decide(run_id, tool_call_id, approved=decision.approved, reason=decision.reason)
        else:
            if "answers" not in decision.model_fields_set:
                return problem(422, NOT_AN_ANSWER)
            first = await runner.answer(run_id, tool_call_id, decision.answers)
        if not first:
            return problem(409, DECIDED)
        if resume:
            background.add_task(_carry_on, runner, run_id)
        return JSONResponse({"decided": True}, headers=NO_STORE, background=background)

    @router.get(
        "/agent/skills",
        summary="Read which skills the assistant offers you",
        responses=documented(unauthorized="Nobody is signed in."),
    )
    async def read_skills(  # pyright: ignore[reportUnusedFunction]  # the decorator registers it
        calling: Annotated[Any, signed_in],
        thread_id: Annotated[str | None, Query(alias="threadId")] = None,
    ) -> Response:
        """Answer the catalogue that a turn of yours would offer, with what each skill is in place of."""
        who = caller(calling, thread_id)
        if isinstance(who, Response):
            return who
        catalog = await runner.assistant.catalog(who)
        body = [
            {"name": one.name, "description": one.description, "scope": one.scope, "beats": list(one.beats)}
            for one in catalog.entries
        ]
        return JSONResponse(body, headers=NO_STORE)

    return router


async def _carry_on(runner: TurnRunner, run_id: str) -> None:
    try:
        await runner.resume(run_id)
    except RunHeld:
        return  # a worker was there first
    except Exception as error:  # noqa: BLE001  # the answer was sent; a server would log the words, which may hold facts
        _log.error("run %s stopped with %s; it can be resumed", run_id, type(error).__name__)


async def _settled(runner: TurnRunner, run: Run, tool_call_id: str) -> Response:
    """Tell a call that was decided before from one that never waited for anybody."""
    name = f"persist:toolcall:{tool_call_id}"
    checkpoints = await runner.engine.checkpoints(run.id)
    if not any(one.name == name and one.value["kind"] in ("action", "ask") for one in checkpoints):
        return problem(404, NO_SUCH_CALL)
    return problem(409, OVER if run.status in ENDED else DECIDED)
