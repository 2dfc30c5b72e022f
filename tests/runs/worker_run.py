"""One worker process of the tests: `python worker_run.py ENGINE URL NAME SECONDS EFFECTS [SYSTEM]`, until it is killed.

ENGINE is `sql` or `dbos`, SECONDS how long its model takes, EFFECTS a file that its tool adds a line to.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from pathlib import Path

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from sqlalchemy import make_url
from sqlalchemy.ext.asyncio import create_async_engine

from onfile.memory import Memory
from onfile.runs.assistant import Assistant
from onfile.runs.polling import PollingWorker
from onfile.runs.runner import TurnRunner
from onfile.runs.sql import SqlJournal
from onfile.runs.tools import ToolContext, read_tool
from onfile.stores import SqlMemoryProvider

LOST_AFTER = 2.0
STEPS = [
    [ToolCallPart("effect", {}, tool_call_id="c1")],
    [ToolCallPart("remember", {"key": "units", "fact": "km"}, tool_call_id="c2")],
]


def runner(url: str, name: str, seconds: float, effects: Path) -> TurnRunner:
    """A runner whose model takes its time, has an effect and then remembers one fact."""

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        await asyncio.sleep(seconds)
        said = sum(isinstance(one, ModelResponse) for one in messages)
        return ModelResponse(parts=list(STEPS[said]) if said < len(STEPS) else [TextPart("Noted.")])

    @read_tool
    async def effect(context: ToolContext) -> str:
        """Do something outside of every transaction."""
        with effects.open("a") as lines:
            lines.write(f"{name} {context.run_id}\n")
        return "done"

    engine = create_async_engine(url)
    assistant = Assistant(model=FunctionModel(answer), memory=Memory(SqlMemoryProvider(engine)), tools=[effect])
    return TurnRunner(assistant, SqlJournal(engine), owner=name, lost_after=LOST_AFTER)


async def main(kind: str, url: str, name: str, seconds: str, effects: str, system: str = "") -> None:
    turns = runner(url, name, float(seconds), Path(effects))
    working = asyncio.ensure_future(by_polling(turns) if kind == "sql" else by_dbos(turns, url, name, system))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, working.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await working


async def by_polling(turns: TurnRunner) -> None:
    await PollingWorker(turns, poll_seconds=0.05).work()


async def by_dbos(turns: TurnRunner, url: str, name: str, system: str) -> None:
    from onfile.runs.workers import DbosWorkers, WorkersConfig

    system = system or make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    workers = DbosWorkers(
        turns,
        WorkersConfig(system_database_url=system, executor_id=name, poll_seconds=0.05, sweep_seconds=0.25),
    )
    await workers.launch()
    try:
        await asyncio.Event().wait()
    finally:
        await workers.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
