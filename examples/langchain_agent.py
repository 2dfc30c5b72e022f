import asyncio
from dataclasses import dataclass

from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver

from onfile import Actor, Memory
from onfile.adapters.langchain import MemoryMiddleware
from onfile.stores import SqlMemoryProvider


@dataclass
class Context:
    actor: Actor


provider = SqlMemoryProvider.from_url("sqlite+aiosqlite:///onfile.db")
agent = create_agent(
    "openai:gpt-5",
    system_prompt="You are the assistant of a freight company.",
    middleware=[MemoryMiddleware(Memory(provider), actor=lambda runtime: runtime.context.actor)],
    context_schema=Context,
    checkpointer=InMemorySaver(),
)


async def main():
    await provider.setup()
    result = await agent.ainvoke(
        {"messages": [{"role": "user", "content": "We ship by rail."}]},
        {"configurable": {"thread_id": "thread_1"}},
        context=Context(Actor(id="ana", tenant_ref="acme")),
        durability="sync",
    )
    print(result["messages"][-1].text)
    await provider.aclose()


asyncio.run(main())
