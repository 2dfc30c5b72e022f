"""An AG-UI endpoint whose agent knows each signed-in person: deps are made per request, never per server."""

from contextlib import asynccontextmanager
from dataclasses import dataclass

from pydantic_ai import Agent
from pydantic_ai.ui.ag_ui import AGUIAdapter
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route

from onfile import Actor, Memory
from onfile.adapters.pydantic_ai import MemoryCapability
from onfile.stores import SqlMemoryProvider


@dataclass
class Deps:
    actor: Actor


provider = SqlMemoryProvider.from_url("sqlite+aiosqlite:///onfile.db")
capability = MemoryCapability(Memory(provider), actor=lambda ctx: ctx.deps.actor)
agent = Agent("openai-chat:gpt-5", deps_type=Deps, capabilities=[capability])


async def chat(request):
    person = {"session-of-ana": "ana", "session-of-bo": "bo"}.get(request.headers.get("X-Session", ""))
    if person is None:
        raise HTTPException(401)
    return await AGUIAdapter.dispatch_request(request, agent=agent, deps=Deps(Actor(id=person, tenant_ref="acme")))


@asynccontextmanager
async def lifespan(_):
    await provider.setup()
    yield
    await provider.aclose()


app = Starlette(lifespan=lifespan, routes=[Route("/chat", chat, methods=["POST"])])
