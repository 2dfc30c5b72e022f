"""One worker process of the tests: `python worker_run.py URL EXECUTOR SECONDS [TAKE_OVER]` until nothing is left."""

from __future__ import annotations

import asyncio
import os
import sys

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from sqlalchemy import make_url
from sqlalchemy.ext.asyncio import create_async_engine

from onfile.memory import Memory
from onfile.runs.assistant import Assistant
from onfile.runs.runner import TurnRunner
from onfile.runs.sql import SqlJournal
from onfile.runs.workers import DbosWorkers, WorkersConfig
from onfile.stores import SqlMemoryProvider


def tell(*words: object) -> None:
    """Say something to the test that started this process."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def workers(url: str, executor: str, seconds: float) -> DbosWorkers:
    """A worker whose model takes its time and then remembers one fact."""

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        await asyncio.sleep(seconds)
        if any(isinstance(one, ModelResponse) for one in messages):
            return ModelResponse(parts=[TextPart("Noted.")])
        tell("model", executor)
        return ModelResponse(parts=[ToolCallPart("remember", {"key": "units", "fact": "km"}, tool_call_id="c1")])

    engine = create_async_engine(make_url(url).set(drivername="postgresql+asyncpg"))
    assistant = Assistant(model=FunctionModel(answer), memory=Memory(SqlMemoryProvider(engine)))
    system = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    config = WorkersConfig(system_database_url=system, executor_id=executor, poll_seconds=0.05)
    return DbosWorkers(TurnRunner(assistant, SqlJournal(engine), owner=executor), config)


async def main(url: str, executor: str, seconds: str, dead: str = "") -> None:
    worker = workers(url, executor, float(seconds))
    await worker.launch()
    if dead:
        tell("took over", len(await worker.take_over(dead)))
    tell("launched")
    while not await worker.idle():
        await asyncio.sleep(0.1)
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
