import asyncio
from dataclasses import dataclass

from pydantic_ai import Agent

from onfile import Actor, Memory
from onfile.adapters.pydantic_ai import MemoryCapability
from onfile.stores import SqlMemoryProvider


@dataclass
class Deps:
    actor: Actor


provider = SqlMemoryProvider.from_url("sqlite+aiosqlite:///onfile.db")
agent = Agent(
    "openai-chat:gpt-5",
    instructions="You are the assistant of a freight company.",
    deps_type=Deps,
    capabilities=[MemoryCapability(Memory(provider), actor=lambda ctx: ctx.deps.actor)],
)


async def main():
    await provider.setup()
    result = await agent.run("We ship by rail.", deps=Deps(Actor(id="ana", tenant_ref="acme")))
    print(result.output)
    await provider.aclose()


asyncio.run(main())
