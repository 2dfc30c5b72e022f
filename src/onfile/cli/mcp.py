"""`onfile mcp`: the facts on file, for any host that speaks the Model Context Protocol."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .failures import Failure
from .options import Database, Tenant
from .output import note

if TYPE_CHECKING:
    from fastmcp.server.auth import TokenVerifier

    from ..adapters.mcp import ActorOf

HOST, PORT = "127.0.0.1", 8378
TOKEN_VARIABLE = "ONFILE_MCP_TOKEN"  # noqa: S105  # the name of a variable, not what is in it


def add_to(application: typer.Typer) -> None:
    """Add the commands of this module."""
    application.command("mcp", rich_help_panel="What a model sees")(mcp)


def mcp(
    *,
    actor: Annotated[
        str | None,
        typer.Option("--actor", metavar="ID", help="The one person it serves. Over HTTP, leave it out for --jwt-key."),
    ] = None,
    tenant: Tenant = None,
    http: Annotated[bool, typer.Option("--http", help="Serve over HTTP instead of standard input and output.")] = False,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="The address to listen on.")] = HOST,
    port: Annotated[int, typer.Option("--port", metavar="PORT", min=1, max=65535, help="The port.")] = PORT,
    jwt_key: Annotated[
        str | None,
        typer.Option(
            "--jwt-key", metavar="FILE", help="A public key (PEM) that signs the tokens; a token's sub is the actor."
        ),
    ] = None,
    jwks: Annotated[
        str | None, typer.Option("--jwks", metavar="URL", help="Where the keys that sign the tokens are published.")
    ] = None,
    issuer: Annotated[str | None, typer.Option("--issuer", help="The issuer that a token must name.")] = None,
    audience: Annotated[str | None, typer.Option("--audience", help="The audience that a token must name.")] = None,
    tenant_claim: Annotated[
        str | None, typer.Option("--tenant-claim", metavar="NAME", help="The claim that names the actor's tenant.")
    ] = None,
    db: Database = "",
) -> None:
    """Serve memory to an MCP host: remember, list_memories, forget, and memory://me to read.

    Over standard input and output it serves one person. Over HTTP it serves one person with a
    bearer token (ONFILE_MCP_TOKEN, or one that it makes and prints), or everybody whose token
    --jwt-key or --jwks verifies.

    Example: [bold]onfile mcp --actor ana[/]
    """
    if find_spec("fastmcp") is None:
        msg = "MCP needs a few packages more: pip install 'onfile[mcp]'"
        raise Failure(msg)
    verified = jwt_key or jwks
    if bool(actor) == bool(verified):
        msg = "say for whom it serves: either --actor ID, or --http with --jwt-key or --jwks for everybody with a token"
        raise Failure(msg)
    if verified and not http:
        msg = "tokens are for HTTP; add --http, or serve one person with --actor"
        raise Failure(msg)
    if verified and not audience:
        msg = "say with --audience for whom the tokens are made, or a token made for another service would do here"
        raise Failure(msg)
    import asyncio  # here and not above: half of what help would load

    if not http:
        asyncio.run(_stdio(db, actor or "", tenant))
        return
    auth = (
        _verifier(key=jwt_key, jwks=jwks, issuer=issuer, audience=audience)
        if verified
        else _bearer(actor or "", tenant)
    )
    from ..adapters.mcp import token_actor

    # The bearer's own claims name the tenant as well, so that one way of asking serves both.
    asyncio.run(_http(db, token_actor(tenant_claim=tenant_claim if verified else "tenant"), auth, host, port))


async def _stdio(db: str, actor: str, tenant: str | None) -> None:
    from ..adapters.mcp import memory_server
    from ..memory import Memory
    from ..records import Actor
    from .database import opened

    who = Actor(id=actor, tenant_ref=tenant)
    async with opened(db, make=True) as provider:
        server = memory_server(Memory(provider), actor=lambda: who)
        await server.run_stdio_async(show_banner=False, log_level="ERROR")


async def _http(db: str, actor: "ActorOf", auth: "TokenVerifier", host: str, port: int) -> None:
    from ..adapters.mcp import memory_server
    from ..memory import Memory
    from .database import opened

    async with opened(db, make=True) as provider:
        server = memory_server(Memory(provider), actor=actor, auth=auth)
        note(f"MCP over HTTP at http://{host}:{port}/mcp")
        await server.run_http_async(
            show_banner=False, host=host, port=port, stateless_http=True, uvicorn_config={"log_level": "error"}
        )


def _bearer(actor: str, tenant: str | None) -> "TokenVerifier":
    import secrets

    from fastmcp.server.auth import AccessToken, TokenVerifier

    expected = os.environ.get(TOKEN_VARIABLE, "")
    if not expected:
        expected = secrets.token_urlsafe(32)
        note(f"The bearer token of this run: {expected}")

    class OneBearer(TokenVerifier):
        async def verify_token(self, token: str) -> AccessToken | None:
            if not secrets.compare_digest(token.encode(), expected.encode()):
                return None
            return AccessToken(token=token, client_id=actor, scopes=[], claims={"sub": actor, "tenant": tenant})

    return OneBearer()


def _verifier(*, key: str | None, jwks: str | None, issuer: str | None, audience: str | None) -> "TokenVerifier":
    from fastmcp.server.auth.providers.jwt import JWTVerifier

    return JWTVerifier(
        public_key=None if key is None else Path(key).read_text("utf-8"),
        jwks_uri=jwks,
        issuer=issuer,
        audience=audience,
    )
