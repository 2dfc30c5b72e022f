import os

from fastmcp.server.auth.providers.jwt import JWTVerifier

from onfile import Memory
from onfile.adapters.mcp import memory_server, token_actor
from onfile.stores import SqlMemoryProvider

memory = Memory(SqlMemoryProvider.from_url("sqlite+aiosqlite:///onfile.db"))  # after `onfile import` or `setup()`
auth = JWTVerifier(jwks_uri=os.environ["JWKS_URL"], issuer="https://login.example.com", audience="onfile")
server = memory_server(memory, actor=token_actor(tenant_claim="org"), auth=auth)

if __name__ == "__main__":
    server.run(transport="http", host="127.0.0.1", port=8378, stateless_http=True)
