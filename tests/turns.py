"""Who asks in the tests of the door, and the two calls that nearly every one of them makes."""

from __future__ import annotations

import pytest

from onfile import Actor, Memory, RememberOutcome, ScopeContext
from onfile.testing import InMemoryMemoryProvider
from tests.providers import Writable

ANA = ScopeContext(actor=Actor(id="ana", tenant_ref="acme"), thread_id="t1")
BOB = ScopeContext(actor=Actor(id="bob", tenant_ref="acme"))
CALL = {"key": "units", "fact": "kilometres"}

# A store that guards its writes, and a host's own provider that does not: the rules hold over both.
over_both = pytest.mark.parametrize("provide", [lambda *records: InMemoryMemoryProvider(records=records), Writable])


async def remember(memory: Memory, call: object = CALL, *, ctx: ScopeContext = ANA, **ids) -> RememberOutcome:
    return await memory.remember(call, digest=await memory.offer(ctx), ctx=ctx, **ids)


async def standing(memory: Memory, ctx: ScopeContext = ANA) -> list[tuple[str, str, str]]:
    return [(entry.scope, entry.key, entry.text) for entry in await memory.read_back(ctx)]
