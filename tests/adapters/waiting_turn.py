"""One turn of any framework that waits for a person, begun by one process and gone on with by another.

Run as `waiting_turn.py MODULE:SUITE FOLDER start|resume`; prints as JSON what the model was told and the store asked.
"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib import import_module
from pathlib import Path

from onfile import Memory
from tests.facts import fact

from .behaviour import ANA, AdapterBehaviour
from .scripts import CountingProvider, Scripts, remember, ship

NAMED, FOLDER, ACT = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
KEPT = FOLDER / "kept"


async def main() -> None:
    module, _, name = NAMED.partition(":")
    suite: AdapterBehaviour = getattr(import_module(f"tests.adapters.{module}"), name)()
    suite.folder = FOLDER
    scripts = Scripts()
    seen = scripts.add("ship it", [remember("carrier", "by rail"), ship()], "shipped")
    provider = CountingProvider(records=[fact("units", "kilometres" if ACT == "start" else "miles")])
    desk = suite.desk(Memory(provider), scripts)
    output = None
    if ACT == "start":
        waiting = await desk.until_approval(ANA, "ship it")
        KEPT.write_text(waiting if isinstance(waiting, str) else waiting.decode("utf-8"), "utf-8")
    else:
        output = await desk.approve(KEPT.read_text("utf-8"), ANA)
    told = {"output": output, "asked": provider.asked, "systems": seen.systems, "results": seen.results}
    sys.stdout.write(json.dumps(told))


asyncio.run(main())
