"""Memory for AI assistants: keyed facts at scopes."""

from __future__ import annotations

from .authority import Verdict, memory_forget_verdict, memory_write_verdict
from .block import build_memory_block
from .digest import DigestEntry, MemoryDigest, OverriddenMemory, resolve_memory_digest
from .errors import OnfileError, ScopeError, WriteRefused
from .keys import fold_key
from .memory import ForgetOutcome, Memory, PublishOutcome
from .provider import (
    ForgetMemory,
    ListMemories,
    MemoryProvider,
    SearchableMemoryProvider,
    SearchMemories,
    StoreMemory,
    WritableMemoryProvider,
)
from .records import Actor, MemoryOrigin, MemoryRecord
from .remember import RememberOutcome, remember_tool
from .scopes import ScopeContext, actor_scope, default_scopes
from .wire.digests import dump_digest, load_digest

__all__ = [
    "Actor",
    "DigestEntry",
    "ForgetMemory",
    "ForgetOutcome",
    "ListMemories",
    "Memory",
    "MemoryDigest",
    "MemoryOrigin",
    "MemoryProvider",
    "MemoryRecord",
    "OnfileError",
    "OverriddenMemory",
    "PublishOutcome",
    "RememberOutcome",
    "ScopeContext",
    "ScopeError",
    "SearchMemories",
    "SearchableMemoryProvider",
    "StoreMemory",
    "Verdict",
    "WritableMemoryProvider",
    "WriteRefused",
    "actor_scope",
    "build_memory_block",
    "default_scopes",
    "dump_digest",
    "fold_key",
    "load_digest",
    "memory_forget_verdict",
    "memory_write_verdict",
    "remember_tool",
    "resolve_memory_digest",
]
