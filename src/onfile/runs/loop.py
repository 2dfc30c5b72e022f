"""The loop: one turn as the checkpoints of its journal, in their one order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai.messages import ModelMessage

from ..digest import MemoryDigest
from ..errors import OnfileError
from ..prompt import SystemPrompt
from ..skills import SkillCatalog
from ..wire.digests import dump_digest, load_digest
from .assistant import Assistant, dump_catalog, load_catalog
from .calls import Call, CallRunner, facts_in
from .journal import Journal, Json, NewRun, ThreadEntry, Unit
from .messages import (
    TextSink,
    ask_model,
    calls_of,
    load_history,
    load_response,
    results_message,
    user_message,
)
from .retrieval import dump_passages


class StageMissing(OnfileError):  # noqa: N818  # it says what is missing
    """A run was started with a stage that this process does not have, and has not got past it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """What a turn resolved before its first model call, all of it read from checkpoints."""

    prompt: SystemPrompt
    tools: Sequence[dict[str, Any]]
    """What the model is offered in this run, with kinds."""
    max_steps: int
    digest: MemoryDigest | None = None
    catalog: SkillCatalog | None = None


async def run_turn(journal: Journal, assistant: Assistant, run: NewRun, *, on_text: TextSink | None = None) -> Json:
    """Run one turn to its end, or as far as its journal lets it.

    Args:
        journal: Answers from what is recorded, and records what is new.
        assistant: What the process offers now; what a run recorded of it wins.
        run: The user's message, and who said it where.
        on_text: Handed the model's text as it comes; nothing for a step that is replayed.

    Returns:
        `text`, the last thing the model said, and `stopped`: `answer` or `max_steps`.

    Raises:
        JournalError: The run is parked, fenced off, or its journal fits other code.
        StageMissing: The run needs a stage that this process does not have.
        Exception: Whatever a model, a resolver or a provider raised before the first tool call.
    """
    turn = _Turn(journal, assistant, run)
    messages = await turn.messages()
    stages = await turn.stages()
    calls = CallRunner(journal=journal, assistant=assistant, run=run, stages=stages)
    text, stopped = "", "max_steps"
    for step in range(stages.max_steps):
        kept = await turn.ask(step, messages, stages, on_text)
        response = load_response(kept["response"])
        messages.append(response)
        await turn.say(f"persist:assistant:{step}", "assistant", kept)
        text = "".join(part.content for part in response.parts if part.part_kind == "text") or text
        asked = [Call(id=id_, tool=tool, arguments=arguments) for id_, tool, arguments in calls_of(response)]
        if not asked:
            stopped = "answer"
            break
        messages.append(results_message(await calls.carry_out(asked)))
    return await turn.end({"text": text, "stopped": stopped})


class _Turn:
    """The checkpoints around the tool calls."""

    def __init__(self, journal: Journal, assistant: Assistant, run: NewRun) -> None:
        self._journal = journal
        self._assistant = assistant
        self._run = run
        self._ctx = run.ctx
        # A turn outside any thread is a thread of its own.
        self._thread = run.ctx.thread_id or f"run:{run.id}"

    async def messages(self) -> list[ModelMessage]:
        """Keep what the user said, and answer it behind the thread's earlier turns."""
        said = {"text": self._run.text}

        async def load() -> Json:
            return await self._assistant.history.choose(await self._journal.thread(self._thread))

        user = await self._journal.say("persist:user", said, self._entry("user", said))
        history = await self._journal.step("load:thread", load)
        return [*load_history(history), user_message(user["text"])]

    async def stages(self) -> Stages:
        """Resolve what the model will read and be offered, each stage once per run."""
        on = await self._journal.step("run:prompt-stages", self._stages_on)
        start = await self._journal.step("persist:run:start", self._start)
        prompt = SystemPrompt(base=start["base"], contributed=tuple(start["contributed"]))
        digest = catalog = None
        if "memory" in on["stages"]:
            digest = load_digest(
                await self._journal.step("memory:digest", self._digest, facts_of=self._assistant.memory)
            )
            prompt = replace(prompt, memory=digest.block)
        if "retrieval" in on["stages"]:
            found = await self._journal.step("retrieve", self._retrieve)
            prompt = replace(prompt, retrieval=found["block"])
        if "skills" in on["stages"]:
            catalog = load_catalog(await self._journal.step("skills:catalog", self._catalog))
            prompt = replace(prompt, skills=catalog.block)
        offered = {
            "memory": digest is not None and digest.writable,
            "skill": catalog is not None and bool(catalog.entries),
        }
        tools = [tool for tool in start["tools"] if offered.get(tool["kind"], True)]
        return Stages(prompt=prompt, tools=tools, max_steps=start["max_steps"], digest=digest, catalog=catalog)

    async def ask(
        self, step: int, messages: Sequence[ModelMessage], stages: Stages, on_text: TextSink | None
    ) -> dict[str, Json]:
        """Make one model call."""

        async def request() -> Json:
            response = await ask_model(
                self._assistant.model,
                messages,
                prompt=stages.prompt,
                tools=stages.tools,
                settings=self._assistant.model_settings,
                on_text=on_text,
            )
            kept: dict[str, Json] = {"response": response}
            facts = facts_in(response, self._run)
            return kept | ({"facts": facts} if facts else {})

        return await self._journal.step(f"llm:{step}", request)

    async def say(self, name: str, kind: Any, kept: dict[str, Json]) -> None:
        """Keep one message of the model in the thread; the checkpoint tells only that it is kept."""
        content = {"message": kept["response"], **({"facts": kept["facts"]} if "facts" in kept else {})}
        await self._journal.say(name, {"kept": kind}, self._entry(kind, content))

    async def end(self, output: dict[str, Json]) -> Json:
        """Close the run in the transaction of its last checkpoint."""

        async def close(unit: Unit) -> Json:
            await unit.end(output)
            return output

        return await self._journal.tx("persist:run:end", close)

    async def _stages_on(self) -> Json:
        return {"stages": self._assistant.stages}

    async def _start(self) -> Json:
        prompt = await self._assistant.prompt(self._ctx)
        return {
            "base": prompt.base,
            "contributed": list(prompt.contributed),
            "prompt_hash": prompt.hash,
            "tools": self._assistant.definitions(),
            "max_steps": self._assistant.max_steps,
        }

    async def _digest(self) -> Json:
        if self._assistant.memory is None:
            raise _missing(self._run, stage="memory")
        digest = await self._assistant.memory.offer(self._ctx, query=self._run.text, run_id=self._run.id)
        return dump_digest(digest)

    async def _retrieve(self) -> Json:
        if self._assistant.retrieval is None:
            raise _missing(self._run, stage="retrieval")
        return dump_passages(await self._assistant.retrieval.passages(self._run.text, self._ctx))

    async def _catalog(self) -> Json:
        if not self._assistant.skills:
            raise _missing(self._run, stage="skills")
        return dump_catalog(await self._assistant.catalog(self._ctx))

    def _entry(self, kind: Any, content: Json) -> ThreadEntry:
        return ThreadEntry(thread_id=self._thread, run_id=self._run.id, kind=kind, content=content)


def _missing(run: NewRun, *, stage: str) -> StageMissing:
    return StageMissing(
        f"run {run.id} was started with {stage} and this process has none; resume it where there is {stage}"
    )
