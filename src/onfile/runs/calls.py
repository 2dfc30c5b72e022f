"""Calls: what happens between a model's tool call and its result."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, cast

from ..digest import MemoryDigest
from ..memory import Memory
from ..remember import remember_tool
from ..scopes import actor_scope
from ..skills import SkillCatalog, read_skill
from ..text import one_line, unkeepable
from ..wire.redaction import FACTS, fact_mark
from .assistant import Assistant
from .journal import Journal, JournalError, Json, NewRun, ThreadEntry
from .messages import call_result, calls_of, load_response
from .tools import OFFERED_BY_THE_LOOP, ToolContext, ToolKind, read_questions, settle_questions

Outcome = Literal["success", "failed", "denied"]
_CLOSED: dict[Outcome, str] = {
    "success": "persist:toolexec",
    "failed": "persist:toolfail",
    "denied": "persist:toolreject",
}

NOT_REMEMBERED = "Not recorded: what is on file could not be reached. Tell the user if it matters."
MAX_CALL_ID = 200
"""A longer id of a model's is named by its digest: a checkpoint's name has at most 255 characters."""
REMEMBER = remember_tool().name
DECLINED = "The person declined this call; nothing was done."


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One tool call of a model."""

    id: str
    tool: str
    arguments: Json
    name: str = ""
    """What its checkpoints are called by: the id, made unique where a model used one twice."""


class Offered(Protocol):
    """What a run offers its model."""

    @property
    def tools(self) -> Sequence[dict[str, Any]]:
        """The definitions, with kinds."""
        ...

    @property
    def digest(self) -> MemoryDigest | None:
        """What the run may see, and `remember` is judged by."""
        ...

    @property
    def catalog(self) -> SkillCatalog | None:
        """The skills that the run may read."""
        ...


class CallRunner:
    """Carries out a run's tool calls, each through its checkpoints."""

    def __init__(self, *, journal: Journal, assistant: Assistant, run: NewRun, stages: Offered) -> None:
        self._journal = journal
        self._assistant = assistant
        self._run = run
        self._stages = stages
        self._named: set[str] = set()
        self._under_way: dict[str, asyncio.Task[Json]] = {}

    async def carry_out(self, asked: Sequence[Call]) -> list[Json]:
        """Carry out one step's calls and answer their results, both in the order of the calls."""
        calls = [self._name(call) for call in asked]
        try:
            return [await self._carry_out(call, calls[place:]) for place, call in enumerate(calls)]
        finally:
            for task in self._under_way.values():
                task.cancel()
            self._under_way.clear()

    async def _carry_out(self, call: Call, rest: Sequence[Call]) -> Json:
        kept = await self._journal.step(f"persist:toolcall:{call.name}", lambda: self._toolcall(call))
        # From the journal, not from this process: what was recorded as an action is never run unapproved.
        kind: ToolKind = kept["kind"]
        facts: dict[str, Json] = {FACTS: kept[FACTS]} if FACTS in kept else {}
        if kind == "action":
            decision = await self._journal.wait(f"approval:{call.name}")
            if not decision.get("approved"):
                reason = decision.get("reason") or ""
                return await self._close(call, "denied", f"{DECLINED} They said: {reason}" if reason else DECLINED, {})
        answer = await self._journal.wait(f"answer:{call.name}") if kind == "ask" and _askable(call) else None
        if kind == "memory":
            done = await self._remember(call, facts)
        else:
            done = await self._journal.step(f"tool:{call.name}", lambda: self._execute(call, kind, answer, rest))
        return await self._close(call, "success" if done["ok"] else "failed", done["message"], facts)

    async def _toolcall(self, call: Call) -> Json:
        kind = self._kind(call.tool)
        kept: dict[str, Json] = {"tool": call.tool, "kind": kind, "args": call.arguments}
        if call.tool == REMEMBER:
            kept[FACTS] = {call.id: _mark(call.arguments, self._run)}
        return kept

    def _kind(self, name: str) -> ToolKind:
        recorded = next((tool["kind"] for tool in self._stages.tools if tool["name"] == name), None)
        live = self._assistant.tool(name)
        # The stricter of what the run was started with and what the process knows.
        if recorded == "action" or (live is not None and live.kind == "action"):
            return "action"
        return cast("ToolKind", recorded or "read")

    async def _close(self, call: Call, outcome: Outcome, content: str, facts: dict[str, Json]) -> Json:
        result = call_result(tool=call.tool, call_id=call.id, content=content, outcome=outcome)
        entry = ThreadEntry(
            thread_id=self._run.ctx.thread_id or f"run:{self._run.id}",
            run_id=self._run.id,
            kind="tool",
            content={"message": result, **facts},
        )
        await self._journal.say(f"{_CLOSED[outcome]}:{call.name}", {"kept": outcome}, entry)
        return result

    async def _execute(self, call: Call, kind: ToolKind, answer: Json, rest: Sequence[Call]) -> Json:
        if kind == "read":
            # Reached only while nothing after this call is recorded, so whatever starts here is new.
            self._start_reads(rest)
            return await self._under_way.pop(call.name)
        if kind == "action":
            return await self._function(call)
        return await _attempt(self._ask(call, answer) if kind == "ask" else self._skill(call))

    def _start_reads(self, rest: Sequence[Call]) -> None:
        for call in rest:
            if self._kind(call.tool) != "read":
                return
            if call.name not in self._under_way:
                self._under_way[call.name] = asyncio.ensure_future(self._function(call))

    async def _function(self, call: Call) -> Json:
        offered = any(tool["name"] == call.tool for tool in self._stages.tools)
        tool = self._assistant.tool(call.tool)
        if not offered or tool is None:
            own = [
                one
                for one in self._stages.tools
                if one["name"] in OFFERED_BY_THE_LOOP or self._assistant.tool(one["name"])
            ]
            known = ", ".join(one["name"] for one in own) or "none"
            return {"ok": False, "message": f"There is no such tool to call now. On offer: {known}."}
        context = ToolContext(ctx=self._run.ctx, run_id=self._run.id, tool_call_id=call.name)

        async def run() -> str:
            return _shown(await tool.call(call.arguments, context))

        return await _attempt(run())

    async def _ask(self, call: Call, answer: Json) -> str:
        return _shown(settle_questions(read_questions(call.arguments), _member(answer, "answers")))

    async def _skill(self, call: Call) -> str:
        catalog = self._stages.catalog or SkillCatalog(scopes=())
        name = _member(call.arguments, "name")
        return await read_skill(self._assistant.skills, name, catalog=catalog, ctx=self._run.ctx)

    async def _remember(self, call: Call, facts: dict[str, Json]) -> Json:
        memory, name = self._assistant.memory, f"tool:{call.name}"
        failed = {"ok": False, "message": NOT_REMEMBERED, **facts}
        if memory is not None and self._journal.joins(memory):
            return await self._journal.tx(
                name, lambda unit: self._record(unit.memory(memory), call, facts), failed=lambda _: failed
            )

        async def write() -> Json:
            if memory is None:
                return failed
            try:
                return await self._record(memory, call, facts)
            except JournalError:
                raise
            except Exception:  # noqa: BLE001  # told to the model without the provider's words, which may hold facts
                return failed

        return await self._journal.step(name, write)

    async def _record(self, memory: Memory, call: Call, facts: dict[str, Json]) -> Json:
        digest = self._stages.digest
        if digest is None:
            return {"ok": False, "message": NOT_REMEMBERED, **facts}
        outcome = await memory.remember(
            call.arguments, digest=digest, ctx=self._run.ctx, run_id=self._run.id, tool_call_id=call.name
        )
        record = outcome.record
        return {
            # A refusal is an answer, and the call was carried out: the model is told why in words.
            "ok": True,
            "message": outcome.message,
            "recorded": outcome.ok and not outcome.unchanged,
            "record_id": record.id if record is not None else None,
            **facts,
        }

    def _name(self, call: Call) -> Call:
        name = first = _checkpoint_id(call.id)
        again = 2
        while name in self._named:
            name, again = f"{first}~{again}", again + 1
        self._named.add(name)
        return Call(id=call.id, tool=call.tool, arguments=call.arguments, name=name)


def facts_in(response: Json, run: NewRun) -> dict[str, str]:
    """Answer the marks by which a response's `remember` calls are found when a fact is forgotten."""
    called = calls_of(load_response(response))
    return {id_: _mark(arguments, run) for id_, tool, arguments in called if tool == REMEMBER}


def _mark(arguments: Json, run: NewRun) -> str:
    key = _member(arguments, "key")
    # By the key as it is written: a control character in the model's own spelling would hide the call from `forget`.
    return fact_mark(scope=actor_scope(run.ctx.actor), key=one_line(key) if isinstance(key, str) else "")


def _member(value: Json, name: str) -> Json:
    return cast("dict[str, Json]", value).get(name) if isinstance(value, dict) else None


def _checkpoint_id(call_id: str) -> str:
    if 0 < len(call_id) <= MAX_CALL_ID and unkeepable(call_id) is None:
        return call_id
    return hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()


def _askable(call: Call) -> bool:
    try:
        read_questions(call.arguments)
    except ValueError:
        return False
    return True


async def _attempt(work: Any) -> Json:
    """Answer a tool's result, or in words for the model what it raised."""
    try:
        return {"ok": True, "message": await work}
    except JournalError:
        # The journal stopped the run, not the tool: a model has nothing to do with it.
        raise
    except Exception as error:  # noqa: BLE001  # whatever a tool raises is the model's to deal with
        return {"ok": False, "message": str(error) or type(error).__name__}


def _shown(answer: Any) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
