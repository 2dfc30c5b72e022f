"""One LangGraph turn, as a process of its own that can be killed in the middle.

Run as `killed_turn.py FOLDER start|recover`. Started, it dies in the second model call. Recovered, it finds another
fact in the store than the run saw, and prints as JSON how it ended and what the store was asked.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from onfile import Memory, ScopeContext

from .behaviour import ANA
from .counting import Counting
from .scripts import Scripts, Step, remember
from .test_langchain import LangChainDesk

FOLDER, ACT = Path(sys.argv[1]), sys.argv[2]


class Dying(Scripts):
    def say_at_once(self, message: str, *, said: int, system: str, tools: dict) -> Step:
        with (FOLDER / "told.jsonl").open("a", encoding="utf-8") as told:
            told.write(json.dumps(system) + "\n")
        if said and ACT == "start":
            os._exit(9)
        return super().say_at_once(message, said=said, system=system, tools=tools)


async def main() -> None:
    provider = Counting.from_url(f"sqlite+aiosqlite:///{FOLDER}/onfile.db")
    await provider.setup()
    memory = Memory(provider)
    text = "kilometres" if ACT == "start" else "miles"
    await memory.publish(scope="actor:ana", key="units", text=text, ctx=ScopeContext(actor=ANA))
    Counting.asked = 0
    scripts = Dying()
    scripts.add("label a pallet", [remember("carrier", "by rail")], "done")
    async with AsyncSqliteSaver.from_conn_string(f"{FOLDER}/checkpoints.db") as saver:
        desk = LangChainDesk(memory, scripts, saver=saver)
        sent = {"messages": [HumanMessage("label a pallet")]} if ACT == "start" else None
        done = await desk.go(sent, ANA, "t")
    told = {"output": done["messages"][-1].text, "asked": Counting.asked, "written": Counting.written}
    sys.stdout.write(json.dumps(told))
    await provider.aclose()


asyncio.run(main())
