"""Mount "what is on file about me" in a FastAPI application: `uvicorn fastapi_app:app`."""

from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import FastAPI, Header, HTTPException

from onfile import Actor, Memory
from onfile.http import memory_router
from onfile.stores import SqlMemoryProvider

provider = SqlMemoryProvider.from_url("sqlite+aiosqlite:///onfile.db")
memory = Memory(provider)


def signed_in(x_session: Annotated[str | None, Header()] = None) -> Actor:
    """Your own sign-in goes here; what it raises reaches the caller unchanged."""
    person = {"session-of-ana": "ana", "session-of-bo": "bo"}.get(x_session or "")
    if person is None:
        raise HTTPException(401, "Sign in first.")
    return Actor(id=person, tenant_ref="acme")


@asynccontextmanager
async def lifespan(_: FastAPI):
    await provider.setup()
    yield
    await provider.aclose()


app = FastAPI(lifespan=lifespan)
app.include_router(memory_router(memory, actor=signed_in))
