"""One LangGraph turn that waits for a person, begun by one process and resumed by another.

Run as `interrupted_turn.py FOLDER start|resume`; prints as JSON what the model was told and the store asked.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from onfile import Memory
from tests.facts import fact

from .behaviour import ANA
from .scripts import CountingProvider, Scripts, remember, ship
from .test_langchain import LangChainDesk

FOLDER, ACT = Path(sys.argv[1]), sys.argv[2]


async def main() -> None:
    scripts = Scripts()
    seen = scripts.add("ship it", [remember("carrier", "by rail"), ship()], "shipped")
    provider = CountingProvider(records=[fact("units", "kilometres" if ACT == "start" else "miles")])
    async with AsyncSqliteSaver.from_conn_string(f"{FOLDER}/checkpoints.db") as saver:
        desk = LangChainDesk(Memory(provider), scripts, saver=saver)
        sent = {"messages": [HumanMessage("ship it")]}
        done = await desk.go(sent if ACT == "start" else Command(resume={"decisions": [{"type": "approve"}]}), ANA, "t")
    told = {"waits": "__interrupt__" in done, "output": done["messages"][-1].text}
    sys.stdout.write(json.dumps({**told, "asked": provider.asked, "systems": seen.systems}))


asyncio.run(main())
