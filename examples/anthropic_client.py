"""Memory with the plain Anthropic client: no framework, one loop. Run as `python anthropic_client.py "message"`."""

import asyncio
import sys
from uuid import uuid4

from anthropic import AsyncAnthropic, omit

from onfile import Actor, Memory, ScopeContext
from onfile.stores import SqlMemoryProvider

BASE = "You are the assistant of a freight company."


def tool_of(tool):
    return {"name": tool.name, "description": tool.description, "input_schema": tool.json_schema}


async def turn(client, memory, ctx, message):
    run_id = str(uuid4())
    digest = await memory.offer(ctx, query=message, run_id=run_id)  # once; every model call of the turn reads the same
    tools = [tool_of(tool) for tool in memory.tools(digest)]
    # The cache mark stands after the part that is the same for everybody: the block is one person's.
    system = [{"type": "text", "text": BASE, "cache_control": {"type": "ephemeral"}}]
    if digest.block:
        system.append({"type": "text", "text": digest.block})
    messages = [{"role": "user", "content": message}]
    while True:
        answer = await client.messages.create(
            model="claude-sonnet-4-5", max_tokens=1024, system=system, messages=messages, tools=tools or omit
        )
        messages.append(
            {"role": "assistant", "content": [part.model_dump(exclude_none=True) for part in answer.content]}
        )
        calls = [part for part in answer.content if part.type == "tool_use"]
        if not calls:
            return "".join(part.text for part in answer.content if part.type == "text")
        results = []
        for call in calls:
            outcome = await memory.remember(call.input, digest=digest, ctx=ctx, run_id=run_id, tool_call_id=call.id)
            told = {"type": "tool_result", "tool_use_id": call.id, "content": outcome.message}
            results.append({**told, "is_error": not outcome.ok})
        messages.append({"role": "user", "content": results})


async def main():
    provider = SqlMemoryProvider.from_url("sqlite+aiosqlite:///onfile.db")
    await provider.setup()
    ana = ScopeContext(actor=Actor(id="ana", tenant_ref="acme"), thread_id="thread_1")
    async with AsyncAnthropic() as client:
        print(await turn(client, Memory(provider), ana, " ".join(sys.argv[1:]) or "We ship by rail."))
    await provider.aclose()


asyncio.run(main())
