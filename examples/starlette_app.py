from contextlib import asynccontextmanager

from starlette.applications import Starlette

from onfile import Actor, Memory
from onfile.adapters.starlette import memory_routes
from onfile.stores import SqlMemoryProvider

provider = SqlMemoryProvider.from_url("sqlite+aiosqlite:///onfile.db")


async def signed_in(request):
    person = {"session-of-ana": "ana", "session-of-bo": "bo"}.get(request.headers.get("X-Session", ""))
    return Actor(id=person, tenant_ref="acme") if person else None


@asynccontextmanager
async def lifespan(_):
    await provider.setup()
    yield
    await provider.aclose()


app = Starlette(lifespan=lifespan, routes=memory_routes(Memory(provider), actor=signed_in))
