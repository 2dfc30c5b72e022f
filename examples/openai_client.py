"""Memory with the plain OpenAI client: no framework, one loop. Run as `python openai_client.py "message"`."""

import asyncio
import json
import sys
from contextlib import suppress
from uuid import uuid4

from openai import AsyncOpenAI, omit

from onfile import Actor, Memory, ScopeContext
from onfile.stores import SqlMemoryProvider

BASE = "You are the assistant of a freight company."


def tool_of(tool):
    function = {"name": tool.name, "description": tool.description, "parameters": tool.json_schema}
    return {"type": "function", "function": function}


async def turn(client, memory, ctx, message):
    run_id = str(uuid4())
    digest = await memory.offer(ctx, query=message, run_id=run_id)  # once; every model call of the turn reads the same
    tools = [tool_of(tool) for tool in memory.tools(digest)]
    system = "\n\n".join(filter(None, [BASE, memory.block(digest)]))
    messages = [{"role": "system", "content": system}, {"role": "user", "content": message}]
    while True:
        completion = await client.chat.completions.create(model="gpt-5", messages=messages, tools=tools or omit)
        answer = completion.choices[0].message
        messages.append(answer.model_dump(exclude_none=True))
        if not answer.tool_calls:
            return answer.content
        for call in answer.tool_calls:
            arguments = call.function.arguments
            with suppress(ValueError):  # what is no JSON is refused in words
                arguments = json.loads(arguments)
            outcome = await memory.remember(arguments, digest=digest, ctx=ctx, run_id=run_id, tool_call_id=call.id)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": outcome.message})


async def main():
    provider = SqlMemoryProvider.from_url("sqlite+aiosqlite:///onfile.db")
    await provider.setup()
    ana = ScopeContext(actor=Actor(id="ana", tenant_ref="acme"), thread_id="thread_1")
    async with AsyncOpenAI() as client:
        print(await turn(client, Memory(provider), ana, " ".join(sys.argv[1:]) or "We ship by rail."))
    await provider.aclose()


asyncio.run(main())
