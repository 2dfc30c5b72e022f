import asyncio

from onfile import Actor, Memory, ScopeContext
from onfile.stores import SqlMemoryProvider


async def main():
    provider = SqlMemoryProvider.from_url("sqlite+aiosqlite:///onfile.db")
    await provider.setup()
    memory, ana = Memory(provider), ScopeContext(actor=Actor(id="ana", tenant_ref="acme"))
    for key, text in {"pallet labels": "two, on the short sides", "units": "miles and pounds"}.items():
        await memory.publish(scope="tenant:acme", key=key, text=text, ctx=ana, elevated=True)
    digest = await memory.offer(ana, query="I think in kilometres")
    said = {"key": "Units", "fact": "kilometres and kilos"}
    await memory.remember(said, digest=digest, ctx=ana, run_id="run_1", tool_call_id="call_1")
    print((await memory.offer(ana, query="how do we label a pallet?")).block)
    await provider.aclose()


asyncio.run(main())
