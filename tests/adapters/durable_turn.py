"""One durable turn of Pydantic AI under DBOS, as a process of its own that can be killed in the middle.

Run as `durable_turn.py FOLDER start|recover`. Started, it dies in the second model call. Recovered, it finds
another fact in the store than the run saw, and prints as JSON what the model was told and what the store was asked.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from dbos import DBOS, DBOSConfig
from pydantic_ai import Agent
from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from onfile import Actor, Memory, ScopeContext
from onfile.adapters.pydantic_ai import MemoryCapability, SkillsCapability
from onfile.skills import CodeSkills, skill

from .counting import Counting

FOLDER, ACT = Path(sys.argv[1]), sys.argv[2]
ANA = Actor(id="ana")
CTX = ScopeContext(actor=ANA)

config: DBOSConfig = {
    "name": "turns",
    "system_database_url": f"sqlite:///{FOLDER}/journal.db",
    "log_level": "CRITICAL",
    "application_version": "v1",
    "executor_id": "worker-1",
    "run_admin_server": False,
}
DBOS(config=config)


@skill(name="label-a-pallet", description="how a pallet is labelled")
def label_a_pallet() -> str:
    return f"as it was on {ACT}"


class Listed(CodeSkills):
    asked = 0

    async def list(self, request):
        type(self).asked += 1
        return await super().list(request)


provider = Counting.from_url(f"sqlite+aiosqlite:///{FOLDER}/onfile.db")
memory = Memory(provider)


async def answer(messages, info):
    system = "\n\n".join(part.content for part in info.model_request_parameters.instruction_parts)
    with (FOLDER / "told.jsonl").open("a") as told:
        told.write(json.dumps(system) + "\n")
    if not any(isinstance(message, ModelResponse) for message in messages):
        fact = {"key": "carrier", "fact": "by rail"}
        calls = [ToolCallPart("remember", fact, "c1"), ToolCallPart("skill", {"name": "label-a-pallet"}, "c2")]
        return ModelResponse(parts=calls)
    if ACT == "start":
        os._exit(9)
    return ModelResponse(parts=[TextPart(f"done {messages[-1].parts[-1].content}")])


agent = Agent(
    FunctionModel(answer),
    name="support",
    instructions="BASE",
    capabilities=[
        MemoryCapability(memory, actor=lambda ctx: ANA),
        SkillsCapability([Listed(label_a_pallet)], actor=lambda ctx: ANA),
        DBOSDurability(),
    ],
)


@DBOS.workflow(name="turn")
async def turn(message: str) -> str:
    return (await agent.run(message)).output


async def main() -> None:
    await provider.setup()
    text = "kilometres" if ACT == "start" else "miles"
    await memory.publish(scope="actor:ana", key="units", text=text, ctx=CTX)
    Counting.asked = 0
    DBOS.launch()
    if ACT == "start":
        handle = await DBOS.start_workflow_async(turn, "label a pallet")
    else:
        (status,) = await DBOS.list_workflows_async()
        handle = await DBOS.retrieve_workflow_async(status.workflow_id)
    output = await handle.get_result()
    steps = [step["function_name"] for step in await DBOS.list_workflow_steps_async(handle.workflow_id)]
    sys.stdout.write(
        json.dumps(
            {"output": output, "asked": Counting.asked + Listed.asked, "written": Counting.written, "steps": steps}
        )
    )
    await provider.aclose()
    DBOS.destroy()


asyncio.run(main())
