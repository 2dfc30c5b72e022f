"""MCP through FastMCP: a server that lets any host remember, list and forget for the person who is signed in."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from fastmcp import FastMCP
from fastmcp.exceptions import ResourceError, ToolError
from fastmcp.server.auth import AuthProvider
from fastmcp.server.dependencies import get_access_token
from fastmcp.tools import Tool
from fastmcp.tools.base import ToolResult
from pydantic import PrivateAttr

from ..digest import MemoryDigest
from ..errors import OnfileError
from ..memory import Memory
from ..provider import can_write
from ..records import Actor
from ..remember import remember_tool
from ..scopes import ScopeContext, actor_scope, resolve_scopes
from ..wire.entries import entries_json
from .turn import context_of

INSTRUCTIONS = (
    "What is on file about the signed-in user and their organisation. Read memory://me before answering, "
    "and record with `remember` what will matter in later conversations."
)
NOT_SIGNED_IN = "Nobody is signed in, so there is no memory to use; sign in and try again."

ActorOf = Callable[[], Actor | ScopeContext]


def token_actor(*, tenant_claim: str | None = None) -> ActorOf:
    """Answer a callable that reads the actor from the verified token of the request.

    Args:
        tenant_claim: The claim that holds the tenant's reference, or None for actors without one.

    Returns:
        A callable for `memory_server`: the token's `sub` is the actor's id. A token without one
        belongs to a program, not a person, and is refused.
    """

    def actor() -> Actor:
        token = get_access_token()
        claims = {} if token is None else token.claims
        subject, tenant = claims.get("sub"), claims.get(tenant_claim) if tenant_claim else None
        if not isinstance(subject, str) or not subject:
            raise ToolError(NOT_SIGNED_IN)
        return Actor(id=subject, tenant_ref=tenant if isinstance(tenant, str) and tenant else None)

    return actor


def memory_server(
    memory: Memory, *, actor: ActorOf | None = None, auth: AuthProvider | None = None, name: str = "onfile"
) -> FastMCP:
    """Build a server with `remember`, `list_memories`, `forget` and the resource `memory://me`.

    Nothing in a call says for whom it is: that comes from `actor`, and stands in no schema.

    Args:
        memory: What to serve.
        actor: Answers who is calling; without it the `sub` of the verified token. A server over
            stdio has one actor: `lambda: Actor(id="ana")`.
        auth: Verifies the tokens of HTTP requests, as FastMCP's `JWTVerifier` does.
        name: What the server is called in a host's list.
    """
    calling = _Calling(memory, actor or token_actor())
    server = FastMCP(name, instructions=INSTRUCTIONS, auth=auth, mask_error_details=True)
    if can_write(memory.provider):
        server.add_tool(_Remember.over(calling))

    @server.tool(annotations={"title": "List what is on file", "readOnlyHint": True})
    async def list_memories() -> list[dict[str, Any]]:  # pyright: ignore[reportUnusedFunction]  # the decorator registers it
        """List every fact that applies to the signed-in user, with the values that each one beat."""
        try:
            entries = await memory.read_back(calling.context())
        except OnfileError as error:
            raise ToolError(str(error)) from error
        return json.loads(entries_json(entries))

    @server.tool(annotations={"title": "Delete a fact", "readOnlyHint": False, "destructiveHint": True})
    async def forget(id: str) -> str:  # noqa: A002  # pyright: ignore[reportUnusedFunction]  # the record's own field name; the decorator registers it
        """Delete one fact of the signed-in user's own, by the id that list_memories shows. There is no way back."""
        try:
            outcome = await memory.forget(id, calling.context())
        except OnfileError as error:
            raise ToolError(str(error)) from error
        if not outcome.ok:
            raise ToolError(outcome.reason)
        return "Forgotten."

    @server.resource("memory://me", title="What is on file", mime_type="text/plain")
    async def block() -> str:  # pyright: ignore[reportUnusedFunction]  # the decorator registers it
        """Read the facts that apply to the signed-in user, as a block for the system prompt."""
        try:
            return (await memory.offer(calling.context())).block
        except ToolError as error:
            raise ResourceError(str(error)) from error
        except OnfileError as error:
            raise ResourceError(str(error)) from error

    return server


class _Calling:
    """Who calls, and what `remember` does for them."""

    def __init__(self, memory: Memory, actor: ActorOf) -> None:
        self.memory = memory
        self.actor = actor

    def context(self) -> ScopeContext:
        return context_of(self.actor())

    async def remember(self, arguments: dict[str, Any]) -> ToolResult:
        # MCP knows no run: the scopes are resolved anew for each call, and a call is its own origin.
        ctx = self.context()
        try:
            scopes = await resolve_scopes(self.memory.scopes, ctx)
            digest = MemoryDigest(scopes=scopes, writable=actor_scope(ctx.actor) in scopes)
            outcome = await self.memory.remember(arguments, digest=digest, ctx=ctx)
        except OnfileError as error:
            raise ToolError(str(error)) from error
        return ToolResult(content=outcome.message, is_error=not outcome.ok)


class _Remember(Tool):
    """The tool as its schema says it, its arguments judged in words by `Memory.remember`."""

    _calling: _Calling = PrivateAttr()

    @classmethod
    def over(cls, calling: _Calling) -> _Remember:
        offered = remember_tool()
        hints = {"title": "Remember a fact", "readOnlyHint": False, "destructiveHint": False, "idempotentHint": True}
        tool = cls.model_validate(
            {
                "name": offered.name,
                "description": offered.description,
                "parameters": offered.json_schema,
                "annotations": hints,
            }
        )
        tool._calling = calling
        return tool

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        return await self._calling.remember(arguments)
