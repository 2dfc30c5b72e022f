"""The same door for code without an event loop: Flask, Django's views, scripts, notebooks' cells run as scripts."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, wait
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from types import TracebackType

    from .digest import DigestEntry, MemoryDigest
    from .memory import ForgetOutcome, Memory, PublishOutcome
    from .remember import MemoryTool, RememberOutcome
    from .scopes import ScopeContext

T = TypeVar("T")

STANDS_STILL = "this thread has an event loop, which would stand still; await the Memory itself here"


class Blocking:
    """Wait for what `Memory` does; safe from several threads, each call on its own.

    All of them share one event loop in a thread of its own, which starts with the first call, so
    that a database's connections stay where they were opened. Give it a `Memory` that nothing else
    awaits. In a server that forks, make one in each worker.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self._closed = False
        self._under_way: set[Future[Any]] = set()

    def __enter__(self) -> Blocking:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Wait for any coroutine where the memory's own ones run, such as `provider.setup()`.

        Raises:
            RuntimeError: This thread has an event loop, which would stand still; or this was closed,
                or used before the process forked.
        """
        # The caller's context goes along: the current span of a trace, a request's log fields.
        context = copy_context()

        async def within() -> T:
            return await asyncio.get_running_loop().create_task(coroutine, context=context)

        try:
            with self._lock:
                loop = self._started()
                waiting = asyncio.run_coroutine_threadsafe(within(), loop)
                self._under_way.add(waiting)
        except RuntimeError:
            coroutine.close()
            raise
        waiting.add_done_callback(self._under_way.discard)
        try:
            return waiting.result()
        except BaseException:
            # Ctrl-C, or a thread that is told to stop: what nobody waits for must not go on writing.
            waiting.cancel()
            raise

    def offer(self, ctx: ScopeContext, query: str = "", run_id: str | None = None) -> MemoryDigest:
        """Resolve what this turn may see, once, as `Memory.offer` does."""
        return self.run(self.memory.offer(ctx, query=query, run_id=run_id))

    def block(self, digest: MemoryDigest) -> str:
        """Answer the block as the digest kept it."""
        return self.memory.block(digest)

    def tools(self, digest: MemoryDigest) -> tuple[MemoryTool, ...]:
        """Answer what to offer the model in this run."""
        return self.memory.tools(digest)

    def remember(
        self,
        arguments: object,
        *,
        digest: MemoryDigest,
        ctx: ScopeContext,
        run_id: str | None = None,
        tool_call_id: str | None = None,
    ) -> RememberOutcome:
        """Carry out one `remember` call of the model, as `Memory.remember` does."""
        return self.run(
            self.memory.remember(arguments, digest=digest, ctx=ctx, run_id=run_id, tool_call_id=tool_call_id)
        )

    def read_back(self, ctx: ScopeContext) -> tuple[DigestEntry, ...]:
        """Answer every entry on file for the actor, as `Memory.read_back` does."""
        return self.run(self.memory.read_back(ctx))

    def forget(self, id: str, ctx: ScopeContext) -> ForgetOutcome:  # noqa: A002  # the record's own field name
        """Delete one record at the actor's own scope, as `Memory.forget` does."""
        return self.run(self.memory.forget(id, ctx))

    def forget_all(self, ctx: ScopeContext) -> int:
        """Delete every record at the actor's own scope, as `Memory.forget_all` does."""
        return self.run(self.memory.forget_all(ctx))

    def publish(self, *, scope: str, key: str, text: str, ctx: ScopeContext, elevated: bool = False) -> PublishOutcome:
        """Write a fact as a person, as `Memory.publish` does."""
        return self.run(self.memory.publish(scope=scope, key=key, text=text, ctx=ctx, elevated=elevated))

    def pin(self, id: str, *, pinned: bool, ctx: ScopeContext, elevated: bool = False) -> PublishOutcome:  # noqa: A002  # the record's own field name
        """Make a record always-on or stop that, as `Memory.pin` does."""
        return self.run(self.memory.pin(id, pinned=pinned, ctx=ctx, elevated=elevated))

    def emit(self, name: str, **payload: object) -> None:
        """Send an event where the memory's own go, as `Memory.emit` does."""
        self.run(self.memory.emit(name, **payload))

    def close(self) -> None:
        """Close the provider, where it has `aclose()`, and end the thread. Once is enough, twice is fine.

        Calls of other threads that are under way are finished first; new ones are refused.
        """
        if self._loop is not None and _has_running_loop():
            raise RuntimeError(STANDS_STILL)
        with self._lock:
            if self._closed:
                return
            self._closed = True
            loop, thread, under_way = self._loop, self._thread, set(self._under_way)
        if loop is None or thread is None or self._pid != os.getpid():
            return
        wait(under_way)
        aclose = getattr(self.memory.provider, "aclose", None)
        try:
            if aclose is not None:
                asyncio.run_coroutine_threadsafe(aclose(), loop).result()
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def _started(self) -> asyncio.AbstractEventLoop:
        """Answer the loop, started if need be; the lock is held."""
        if _has_running_loop():
            raise RuntimeError(STANDS_STILL)
        if self._closed:
            msg = "this Blocking was closed; make another one"
            raise RuntimeError(msg)
        if self._loop is None:
            self._pid = os.getpid()
            self._loop = asyncio.new_event_loop()
            # A daemon: a script that forgets to close must still end.
            self._thread = threading.Thread(target=self._loop.run_forever, name="onfile-blocking", daemon=True)
            self._thread.start()
        elif self._pid != os.getpid():
            msg = "this Blocking was used before the process forked; make one in each worker"
            raise RuntimeError(msg)
        return self._loop


def _has_running_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
