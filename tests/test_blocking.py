"""Blocking is the same door for code without an event loop."""

from __future__ import annotations

import asyncio
import contextvars
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from inspect import signature
from pathlib import Path

import pytest

from onfile import Actor, Memory, ScopeContext
from onfile.blocking import Blocking
from onfile.stores import SqlMemoryProvider
from onfile.testing import InMemoryMemoryProvider
from tests.facts import fact

CTX = ScopeContext(actor=Actor(id="ana", tenant_ref="acme"))


def on_a_file(folder: Path) -> Blocking:
    provider = SqlMemoryProvider.from_url(f"sqlite+aiosqlite:///{folder}/onfile.db")
    memory = Blocking(Memory(provider))
    memory.run(provider.setup())
    return memory


def test_a_turn_without_an_event_loop_remembers_and_reads_back(tmp_path: Path):
    with on_a_file(tmp_path) as memory:
        digest = memory.offer(CTX, query="hello")
        (tool,) = memory.tools(digest)

        outcome = memory.remember({"key": "units", "fact": "kilometres"}, digest=digest, ctx=CTX)

        assert tool.name == "remember" and outcome.ok
        assert "units: kilometres" in memory.block(memory.offer(CTX))


def test_a_person_s_acts_are_there_too(tmp_path: Path):
    with on_a_file(tmp_path) as memory:
        published = memory.publish(scope="tenant:acme", key="units", text="miles", ctx=CTX, elevated=True)
        own = memory.publish(scope="actor:ana", key="lunch", text="lentils", ctx=CTX)
        assert published.record and own.record

        assert memory.pin(published.record.id, pinned=True, ctx=CTX, elevated=True).ok
        assert [entry.key for entry in memory.read_back(CTX)] == ["units", "lunch"]
        assert memory.forget(published.record.id, CTX).status == "forbidden"
        assert memory.forget(own.record.id, CTX).status == "forgotten"
        memory.publish(scope="actor:ana", key="tea", text="green", ctx=CTX)
        assert (memory.forget_all(CTX), memory.forget_all(CTX)) == (1, 0)


def test_every_public_act_of_memory_is_there_with_the_same_parameters():
    acts = [name for name, member in vars(Memory).items() if callable(member) and not name.startswith("_")]

    assert {name: list(signature(getattr(Blocking, name)).parameters) for name in acts} == {
        name: list(signature(getattr(Memory, name)).parameters) for name in acts
    }


def test_many_threads_share_one_and_none_is_lost(tmp_path: Path):
    # given one door and twelve threads
    with on_a_file(tmp_path) as memory:

        def note(number: int) -> bool:
            ctx = ScopeContext(actor=Actor(id=f"person-{number % 3}"))
            digest = memory.offer(ctx)
            return memory.remember({"key": f"key-{number}", "fact": "yes"}, digest=digest, ctx=ctx).ok

        # when they write at once
        with ThreadPoolExecutor(12) as pool:
            assert all(pool.map(note, range(36)))

        # then each person has their own twelve facts
        for number in range(3):
            assert len(memory.read_back(ScopeContext(actor=Actor(id=f"person-{number}")))) == 12


def test_what_a_provider_raises_reaches_the_caller():
    class Gone(InMemoryMemoryProvider):
        async def list(self, request):
            raise ConnectionError

    with Blocking(Memory(Gone())) as memory, pytest.raises(ConnectionError):
        memory.offer(CTX)


def test_the_caller_s_context_goes_along():
    request_id = contextvars.ContextVar("request_id", default="none")
    told: list[str] = []
    memory = Blocking(Memory(InMemoryMemoryProvider(), on_event=lambda event: told.append(request_id.get())))
    request_id.set("request-7")

    with memory:
        memory.offer(CTX)

    assert told == ["request-7"]


async def test_in_an_event_loop_it_says_what_to_do_instead_of_standing_still():
    memory = Blocking(Memory(InMemoryMemoryProvider()))

    with pytest.raises(RuntimeError, match="await the Memory itself"):
        memory.offer(CTX)

    memory.close()


def test_a_closed_one_says_so_and_closing_twice_is_fine():
    memory = Blocking(Memory(InMemoryMemoryProvider(records=[fact()])))
    memory.offer(CTX)
    memory.close()
    memory.close()

    with pytest.raises(RuntimeError, match="closed"):
        memory.offer(CTX)


def test_closing_lets_the_calls_of_other_threads_finish_and_leaves_none_waiting_for_ever():
    began = threading.Event()

    class Slow(InMemoryMemoryProvider):
        closed = False

        async def list(self, request):
            began.set()
            await asyncio.sleep(0.2)
            assert not self.closed
            return await super().list(request)

        async def aclose(self):
            self.closed = True

    memory = Blocking(Memory(Slow(records=[fact()])))
    with ThreadPoolExecutor() as pool:
        under_way = pool.submit(memory.read_back, CTX)
        began.wait(5)
        memory.close()

        assert len(under_way.result(5)) == 1
    assert memory.memory.provider.closed
    with pytest.raises(RuntimeError, match="closed"):
        memory.read_back(CTX)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_one_that_was_used_before_a_fork_says_so_in_the_child_instead_of_hanging():
    code = """
import os, sys
from onfile import Actor, Memory, ScopeContext
from onfile.blocking import Blocking
from onfile.testing import InMemoryMemoryProvider
import warnings; warnings.simplefilter("ignore")
memory, ctx = Blocking(Memory(InMemoryMemoryProvider())), ScopeContext(actor=Actor(id="ana"))
memory.offer(ctx)
if os.fork() == 0:
    try:
        memory.offer(ctx)
    except RuntimeError as error:
        print(error, flush=True)
    os._exit(0)
os.wait()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)

    assert "make one in each worker" in done.stdout


def test_a_script_that_forgets_to_close_still_ends(tmp_path: Path):
    code = """
from onfile import Actor, Memory, ScopeContext
from onfile.blocking import Blocking
from onfile.stores import SqlMemoryProvider
provider = SqlMemoryProvider.from_url("sqlite+aiosqlite:///onfile.db")
memory = Blocking(Memory(provider))
memory.run(provider.setup())
memory.publish(scope="actor:ana", key="units", text="km", ctx=ScopeContext(actor=Actor(id="ana")))
print("done")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=30
    )

    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)
