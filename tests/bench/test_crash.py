"""The judge of the crash bench can see what it is there to see."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from bench.crash_judge import Judge
from bench.crash_writer import Writer

ACTS = 60


@pytest.fixture
async def written(tmp_path: Path) -> Path:
    """The database that one undisturbed writer leaves."""
    url = f"sqlite+aiosqlite:///{tmp_path}/onfile.db"
    await Writer(url, tmp_path / "w0", "w0", seed=1, patient=False).live(ACTS)
    return tmp_path / "onfile.db"


async def violations(database: Path) -> set[str]:
    judge = Judge(f"sqlite+aiosqlite:///{database}", {"w0": database.parent / "w0"})
    await judge.prepare()
    await judge.in_the_end()
    await judge.aclose()
    return set(judge.violations)


async def test_an_undisturbed_writer_is_found_in_order(written):
    assert await violations(written) == set()


@pytest.mark.parametrize(
    ("harm", "seen"),
    [
        (
            "DELETE FROM agent_memory WHERE id = (SELECT max(id) FROM agent_memory)",
            "an acknowledged write stands not once",
        ),
        ("UPDATE agent_memory SET text = 'half' WHERE id = (SELECT max(id) FROM agent_memory)", "a fact is a mixture"),
        ("UPDATE agent_memory SET origin_run_id = 'w0.1.1' WHERE scope = 'actor:w0'", "a fact is a mixture"),
        (
            "INSERT INTO agent_memory SELECT id || 'x', scope, 'other', 'other', text, origin_author, origin_thread_id,"
            " origin_run_id, origin_actor_ref, pinned, created_at, updated_at, expires_at FROM agent_memory LIMIT 1",
            "a fact stands that nobody keeps",
        ),
        (
            "DELETE FROM agent_memory_receipt WHERE digest = (SELECT max(digest) FROM agent_memory_receipt)",
            "a write has no receipt",
        ),
        ("INSERT INTO agent_memory_receipt VALUES ('of nobody', '2026-09-01')", "a receipt is nobody's"),
        ("INSERT INTO agent_memory_vector VALUES ('mem_of_nobody', 'crash', 8, x'00')", "a vector without its fact"),
        ("UPDATE agent_memory_vector SET vector = zeroblob(16)", "a vector is of another text"),
        ("DELETE FROM agent_memory_change WHERE revision = 2", "a revision is missing"),
        ("UPDATE agent_memory_revision SET revision = revision + 1", "a revision is missing"),
    ],
)
async def test_harm_done_behind_the_store_s_back_is_seen(written, harm, seen):
    file = sqlite3.connect(written)
    changed = file.execute(harm).rowcount
    file.commit()
    file.close()

    assert changed > 0
    assert seen in await violations(written)
