"""What a journal costs: milliseconds per checkpoint, and a whole turn with a model that takes no time.

python -m bench.runs                                        in memory and SQLite
python -m bench.runs --url postgresql+asyncpg://host/empty  a PostgreSQL database as well
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from sqlalchemy.ext.asyncio import create_async_engine

from onfile.memory import Memory
from onfile.records import Actor
from onfile.runs.assistant import Assistant
from onfile.runs.inline import InlineJournal
from onfile.runs.journal import JournalEngine, NewRun
from onfile.runs.runner import TurnRunner
from onfile.runs.sql import SqlJournal
from onfile.scopes import ScopeContext
from onfile.stores import SqlMemoryProvider
from onfile.testing import InMemoryMemoryProvider

STEPS = 200
TURNS = 30


def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    """Remember one fact, then answer."""
    if any(isinstance(one, ModelResponse) for one in messages):
        return ModelResponse(parts=[TextPart("Noted.")])
    return ModelResponse(parts=[ToolCallPart("remember", {"key": "units", "fact": "km"}, tool_call_id="c1")])


async def timed(work: Any) -> float:
    """Milliseconds."""
    started = time.perf_counter()
    await work
    return (time.perf_counter() - started) * 1000


async def value(*_: Any) -> dict[str, str]:
    """What a checkpoint holds: about as much as a short answer."""
    return {"text": "x" * 200}


async def measure(name: str, engine: JournalEngine, provider: Any) -> None:
    """Print one line for one engine."""
    await engine.create(NewRun(id="steps", text="hello", ctx=ScopeContext(actor=Actor(id="ana"))))
    journal = await engine.claim("steps", owner="bench")
    steps = [await timed(journal.step(f"step:{number}", value)) for number in range(STEPS)]
    txs = [await timed(journal.tx(f"tx:{number}", value)) for number in range(STEPS)]
    runner = TurnRunner(Assistant(model=FunctionModel(answer), memory=Memory(provider)), engine)
    turns = [
        await timed(runner.start("hello", ctx=ScopeContext(actor=Actor(id=f"a{number}"), thread_id=f"t{number}")))
        for number in range(TURNS)
    ]
    print(
        f"{name:<12} step {statistics.median(steps):6.2f} ms   tx {statistics.median(txs):6.2f} ms   "
        f"turn of 13 checkpoints {statistics.median(turns):7.1f} ms   (medians of {STEPS} and {TURNS})"
    )


async def measure_sql(name: str, url: str) -> None:
    """Measure a SQL journal with facts beside it."""
    engine = create_async_engine(url)
    provider, journal = SqlMemoryProvider(engine), SqlJournal(engine)
    await provider.setup()
    await journal.setup()
    await measure(name, journal, provider)
    await provider.aclose()
    await engine.dispose()


async def main() -> None:
    """Measure every engine there is."""
    parser = argparse.ArgumentParser(description="Measure what a journal costs.")
    parser.add_argument("--url", help="an empty PostgreSQL database to measure as well")
    options = parser.parse_args()
    await measure("in memory", InlineJournal(), InMemoryMemoryProvider())
    with tempfile.TemporaryDirectory() as folder:
        await measure_sql("SQLite", f"sqlite+aiosqlite:///{folder}/runs.db")
    if options.url:
        await measure_sql("PostgreSQL", options.url)


if __name__ == "__main__":
    asyncio.run(main())
