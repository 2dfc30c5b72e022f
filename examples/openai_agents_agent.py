import asyncio
from dataclasses import dataclass

from agents import Agent, RunConfig, Runner

from onfile import Actor, Memory
from onfile.adapters.openai_agents import AgentsMemory, MemoryContext
from onfile.stores import SqlMemoryProvider


@dataclass(kw_only=True)
class Context(MemoryContext):
    actor: Actor


provider = SqlMemoryProvider.from_url("sqlite+aiosqlite:///onfile.db")
memory = AgentsMemory(Memory(provider), actor=lambda context: context.actor)
agent = Agent(
    name="assistant",
    model="gpt-5",
    instructions="You are the assistant of a freight company.",
    tools=[memory.tool],
)


async def main():
    await provider.setup()
    config = RunConfig(call_model_input_filter=memory.filter, tracing_disabled=True)
    context = Context(actor=Actor(id="ana", tenant_ref="acme"))
    result = await Runner.run(agent, "We ship by rail.", context=context, run_config=config)
    print(result.final_output)
    await provider.aclose()


asyncio.run(main())
