import asyncio

from onfile import Actor, Memory, ScopeContext
from onfile.adapters.langgraph_store import ScopedStore, label
from onfile.stores import SqlMemoryProvider


async def main():
    provider = SqlMemoryProvider.from_url("sqlite+aiosqlite:///onfile.db")
    await provider.setup()
    memory, ctx = Memory(provider), ScopeContext(actor=Actor(id="ana", tenant_ref="acme"))
    store = ScopedStore(memory, digest=await memory.offer(ctx), ctx=ctx)  # one per run
    await store.aput((label("actor:ana"),), "carrier", {"text": "by rail"})
    for item in await store.asearch(()):
        print(item.namespace, item.key, item.value["text"])
    await provider.aclose()


asyncio.run(main())
