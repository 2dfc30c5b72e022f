import asyncio

from agent_framework import Agent
from agent_framework.openai import OpenAIChatClient

from onfile import Actor, Memory
from onfile.adapters.agent_framework import MemoryContextProvider
from onfile.stores import SqlMemoryProvider

provider = SqlMemoryProvider.from_url("sqlite+aiosqlite:///onfile.db")
memory = MemoryContextProvider(
    Memory(provider), actor=lambda session: Actor(id=session.state["user"], tenant_ref=session.state["company"])
)
agent = Agent(
    OpenAIChatClient(model="gpt-5"),
    instructions="You are the assistant of a freight company.",
    context_providers=[memory],
)


async def main():
    await provider.setup()
    session = agent.create_session()
    session.state.update(user="ana", company="acme")  # from your sign-in: who a conversation belongs to
    print((await agent.run("We ship by rail.", session=session)).text)
    await provider.aclose()


asyncio.run(main())
