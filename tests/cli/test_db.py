"""An operator brings a database up to date, hears how it is, and gives back its room."""

from __future__ import annotations

import asyncio
import sqlite3

import pytest
from sqlalchemy import make_url
from sqlalchemy.ext.asyncio import create_async_engine

from tests.facts import fact
from tests.stores import servers

SECRET = "the-vault-opens-at-noon"


def test_an_upgrade_makes_a_database_and_a_second_one_changes_nothing(onfile):
    assert onfile("db", "upgrade", "--db", "new.db").out == "at revision 0003\n"
    assert onfile("db", "upgrade", "--db", "new.db").code == 0
    assert onfile("db", "check", "--db", "new.db").out == "the tables are as defined\n"
    assert onfile("db", "current", "--db", "new.db", "--json").json == {"current": "0003", "head": "0003"}


def test_a_database_that_setup_made_is_pending_until_it_is_taken_over(onfile, on_file, stored):
    db = on_file(fact())
    before = stored(db)

    checked = onfile("db", "check", "--db", db)
    onfile("db", "upgrade", "--db", db)

    assert checked.code == 1
    assert "onfile db upgrade" in checked.err
    assert onfile("db", "check", "--db", db).code == 0
    assert stored(db) == before


def test_to_look_at_a_database_does_not_make_its_tables(onfile):
    sqlite3.connect("empty.db").close()

    assert onfile("db", "current", "--db", "empty.db").out.startswith("at revision none")
    assert sqlite3.connect("empty.db").execute("SELECT name FROM sqlite_master").fetchall() == []


def test_the_statements_are_printed_without_opening_a_database(onfile):
    ended = onfile("db", "sql", "--db", "postgresql://nobody@nowhere.invalid/facts")

    assert ended.code == 0
    assert "CREATE TABLE agent_memory " in ended.out


def test_the_doctor_counts_and_says_what_to_do_and_quotes_no_fact(onfile, on_file):
    pins = [fact(f"pin {number}", pinned=True, scope="tenant:acme") for number in range(21)]
    db = on_file(
        fact("k" * 65, SECRET + "x" * 240), fact(scope="Actor:ana"), fact(scope="global"), fact(scope="team:1"), *pins
    )
    onfile("db", "upgrade", "--db", db)

    ended = onfile("db", "doctor", "--db", db, "--json")
    spoken = onfile("db", "doctor", "--db", db)

    assert (ended.code, spoken.code) == (1, 1)
    assert ended.json["rows"] == {"actor": 1, "tenant": 21, "global": 1, "other": 2}
    assert (ended.json["long_facts"], ended.json["long_keys"], ended.json["overpinned_scopes"]) == (1, 1, 1)
    assert [finding["needs_action"] for finding in ended.json["findings"]] == [False, False, True]
    assert "onfile unpin" in spoken.out
    assert SECRET not in ended.out + spoken.out
    assert "acme" not in ended.out + spoken.out


def test_a_healthy_database_has_nothing_to_do(onfile):
    onfile("db", "upgrade", "--db", "new.db")

    ended = onfile("db", "doctor", "--db", "new.db")

    assert ended.code == 0
    assert ended.out.endswith("nothing to do\n")


def test_the_doctor_finds_missing_tables_and_makes_none(onfile):
    sqlite3.connect("empty.db").close()

    ended = onfile("db", "doctor", "--db", "empty.db")
    as_json = onfile("db", "doctor", "--db", "empty.db", "--json")

    assert (ended.code, as_json.code) == (1, 1)
    assert "agent_memory" in ended.out
    assert "run 'onfile db upgrade'" in as_json.json["findings"][0]["do"]
    for command in ("vacuum", "sweep"):
        refused = onfile("db", command, "--db", "empty.db")
        assert (refused.code, refused.err.count("\n")) == (2, 1)
        assert "onfile db upgrade" in refused.err
    assert sqlite3.connect("empty.db").execute("SELECT name FROM sqlite_master").fetchall() == []


def test_the_doctor_finds_a_column_missing_that_it_would_have_asked_for(onfile, on_file):
    db = on_file(fact())
    onfile("db", "upgrade", "--db", db)
    with sqlite3.connect(db) as conn:
        conn.execute("DROP INDEX ix_agent_memory_expires_at")
        conn.execute("ALTER TABLE agent_memory DROP COLUMN expires_at")

    ended = onfile("db", "doctor", "--db", db)
    as_json = onfile("db", "doctor", "--db", db, "--json")

    assert (ended.code, ended.err) == (1, "")
    assert "! the tables differ from their definitions in 2 places: 'onfile db check' names them" in ended.out
    assert [finding["needs_action"] for finding in as_json.json["findings"]] == [True]


def test_what_a_newer_version_upgraded_is_not_to_be_upgraded_by_this_one(onfile, on_file):
    db = on_file(fact())
    onfile("db", "upgrade", "--db", db)
    with sqlite3.connect(db) as conn:
        conn.execute("UPDATE onfile_version SET version_num = '9999'")

    doctor, check = onfile("db", "doctor", "--db", db), onfile("db", "check", "--db", db)

    assert "! a newer version of onfile has upgraded this database: install that version" in doctor.out
    assert "install that version" in check.err
    assert "onfile db upgrade" not in doctor.out + check.err
    assert (doctor.code, check.code) == (1, 1)


@pytest.mark.parametrize("command", [["db", "doctor"], ["db", "sweep"], ["db", "vacuum"], ["list"]], ids=str)
def test_a_damaged_file_is_told_as_damaged(onfile, on_file, tmp_path, command):
    db = on_file(*(fact(f"key {number}", "x" * 200) for number in range(100)))
    file = tmp_path / db
    content = bytearray(file.read_bytes())
    for start in range(4096, len(content), 4096):
        content[start : start + 100] = b"\xff" * 100
    file.write_bytes(content)

    ended = onfile(*command, "--db", db)

    assert ended.code == 2
    assert "damaged" in ended.err
    assert "back-up" in ended.err


def test_a_vacuum_tells_who_is_in_its_way(onfile, on_file, monkeypatch):
    db = on_file(fact())
    monkeypatch.setattr("onfile.stores.dialects.BUSY_MS", 100)
    other = sqlite3.connect(db)
    other.execute("BEGIN IMMEDIATE")

    ended = onfile("db", "vacuum", "--db", db)
    other.close()

    assert ended.code == 2
    assert "locked by another process" in ended.err


def test_the_doctor_takes_the_blocks_own_ceiling_for_pins(onfile, on_file):
    db = on_file(*(fact(f"pin {number}", pinned=True, scope="tenant:acme") for number in range(3)))
    onfile("db", "upgrade", "--db", db)

    assert onfile("db", "doctor", "--db", db).code == 0
    assert "a block of 2 has places" in onfile("db", "doctor", "--max-memories", "2", "--db", db).out


def test_the_doctor_names_the_runs_that_still_hold_something_forgotten(onfile, on_file):
    db = on_file(fact())
    onfile("db", "upgrade", "--db", db)
    with sqlite3.connect(db) as conn:
        conn.execute("INSERT INTO agent_run_erasure VALUES ('run_1', 'a-mark', 'mem_1', '2026-01-01')")

    ended = onfile("db", "doctor", "--db", db)

    assert "1 run under way with something forgotten since: run_1: it goes when the run ends" in ended.out


def test_a_vacuum_keeps_every_fact_and_empties_the_log(onfile, on_file, stored, tmp_path):
    db = on_file(*(fact(f"key {number}") for number in range(50)))
    before = stored(db)

    assert onfile("db", "vacuum", "--db", db).code == 0

    assert stored(db) == before
    log = tmp_path / "facts.db-wal"
    assert not log.exists() or log.stat().st_size == 0


def test_a_sweep_deletes_what_has_expired(onfile, on_file, stored):
    db = on_file(fact(id="mem_1"), fact("b", id="mem_2"))
    with sqlite3.connect(db) as conn:
        conn.execute("UPDATE agent_memory SET expires_at = '2020-01-01T00:00:00.000000+00:00' WHERE id = 'mem_1'")

    doctor = onfile("db", "doctor", "--db", db)
    ended = onfile("db", "sweep", "--db", db)

    assert "1 fact expired and is still on file: run 'onfile db sweep'" in doctor.out
    assert ended.out == "1 expired fact and 0 receipts deleted\n"
    assert [memory.record.id for memory in stored(db)] == ["mem_2"]


def test_everything_of_one_person_is_exported_and_forgotten_and_nothing_else(onfile, on_file, stored):
    db = on_file(fact("a"), fact("b"), fact("c", scope="actor:ana b"), fact("d", scope="global", id="mem_d"))

    exported = onfile("export", "--db", db, "--actor", "ana")
    forgotten = onfile("forget", "--all", "--actor", "ana", "--yes", "--db", db)
    again = onfile("forget", "--all", "--actor", "ana", "--yes", "--db", db, "--json")

    assert exported.out.count("\n") == 2
    assert (forgotten.out, again.json) == ("2 facts forgotten\n", {"forgotten": 0})
    assert {memory.record.key for memory in stored(db)} == {"c", "d"}


def test_an_operator_erases_one_scope_and_is_told_the_count(onfile, on_file, stored):
    db = on_file(fact("a", scope="tenant:acme"), fact("b", scope="tenant:acme-corp"))

    ended = onfile("erase", "--scope", "tenant:acme", "--yes", "--db", db)

    assert ended.out == "1 fact forgotten\n"
    assert [memory.record.key for memory in stored(db)] == ["b"]


def test_forgetting_takes_an_id_or_all_and_never_both_or_neither(onfile, on_file):
    db = on_file(fact(id="mem_1"))

    for arguments in (["mem_1", "--all"], []):
        ended = onfile("forget", *arguments, "--actor", "ana", "--yes", "--db", db)
        assert (ended.code, ended.err.count("\n")) == (2, 1)


def test_the_doctor_counts_what_lacks_a_vector_of_the_applications_embedder(onfile, on_file, tmp_path):
    pytest.importorskip("numpy")
    db = on_file(fact())
    onfile("db", "upgrade", "--db", db)
    (tmp_path / "shop_embedder.py").write_text(
        "from onfile.recall import CallableEmbedder\n"
        "def make():\n"
        "    return CallableEmbedder(lambda texts: [[1.0, 0.0]] * len(texts), model='shop-1', dimensions=2)\n"
    )
    asked = ("--embedder", "shop_embedder:make", "--db", db)

    lacking = onfile("db", "doctor", *asked)
    onfile("reindex", *asked)

    assert onfile("db", "doctor", "--db", db).code == 0
    assert lacking.code == 1
    assert "1 fact with no vector of shop-1: run 'onfile reindex'" in lacking.out
    assert onfile("db", "doctor", *asked).code == 0


def test_the_doctor_finds_a_server_that_would_cut_what_does_not_fit(onfile, mariadb_url):
    asyncio.run(servers.emptied(servers.by_driver(mariadb_url, "mysql+asyncmy")))
    onfile("db", "upgrade", "--db", mariadb_url)

    lax = onfile("db", "doctor", "--db", f"{mariadb_url}?sql_mode=ANSI_QUOTES")

    assert onfile("db", "doctor", "--db", mariadb_url).code == 0
    assert lax.code == 1
    assert "STRICT_TRANS_TABLES" in lax.out


ROLE = "onfile_test_shop"


@pytest.fixture
def guarded_urls(postgres_url):
    """An empty database's URL: the superuser's, the owner's, and that of an application's role."""
    asyncio.run(servers.emptied(servers.by_driver(postgres_url, "postgresql+asyncpg")))
    owner = f"{ROLE}_owner"
    for role in (owner, ROLE):
        made = f"IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}') THEN CREATE ROLE {role} LOGIN; END IF;"
        asyncio.run(run_on(postgres_url, f"DO $$ BEGIN {made} END $$"))
    asyncio.run(run_on(postgres_url, f"GRANT ALL ON SCHEMA public TO {owner}"))
    urls = [make_url(postgres_url).set(username=name).render_as_string() for name in (owner, ROLE)]
    yield postgres_url, *urls
    asyncio.run(run_on(postgres_url, "DROP TABLE IF EXISTS agent_memory CASCADE"))


async def run_on(url, statement):
    engine = create_async_engine(servers.by_driver(url, "postgresql+asyncpg"))
    async with engine.begin() as conn:
        await conn.exec_driver_sql(statement)
    await engine.dispose()


def test_row_level_security_is_switched_on_by_the_owner_and_holds_the_application(onfile, guarded_urls):
    _, owner, shop = guarded_urls
    onfile("db", "upgrade", "--db", owner)
    onfile("publish", "--scope", "tenant:acme", "--key", "units", "kilograms", "--db", owner)

    printed = onfile("db", "rls", "--role", ROLE, "--print", "--db", owner)
    assert onfile("list", "--scope", "tenant:acme", "--db", shop).code == 2
    switched = [onfile("db", "rls", "--role", ROLE, "--db", owner) for _ in range(2)]

    assert printed.out.startswith("BEGIN;\nALTER TABLE agent_memory ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL")
    assert [(ended.code, ended.out) for ended in switched] == [(0, switched[0].out)] * 2
    assert switched[0].out.startswith("row-level security is on for ")
    assert ROLE in switched[0].err
    # the owner's commands ask for every scope, the application's role may not
    assert "kilograms" in onfile("list", "--db", owner).out
    assert "kilograms" in onfile("list", "--scope", "tenant:acme", "--db", shop).out
    refused = onfile("list", "--db", shop)
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert "--operator" in refused.err

    assert onfile("db", "rls", "--off", "--db", owner).out == "row-level security is off\n"
    assert "kilograms" in onfile("list", "--db", shop).out


def test_what_was_printed_does_the_same_when_somebody_else_runs_it(onfile, guarded_urls):
    superuser, owner, shop = guarded_urls
    onfile("db", "upgrade", "--db", owner)

    for statement in onfile("db", "rls", "--role", ROLE, "--print", "--db", owner).out.split(";\n"):
        if statement not in {"BEGIN", "COMMIT", ""}:
            asyncio.run(run_on(superuser, statement))

    assert onfile("list", "--scope", "tenant:acme", "--db", shop).code == 0
    assert onfile("list", "--db", shop).code == 2


def test_row_level_security_that_would_hold_nobody_is_refused_in_words(onfile, guarded_urls, on_file):
    superuser, owner, shop = guarded_urls
    early = onfile("db", "rls", "--db", owner)
    onfile("db", "upgrade", "--db", owner)

    for arguments, said in (
        (["--role", "nobody_here", "--db", owner], "no database role nobody_here"),
        (["--role", f"{ROLE}_owner", "--db", owner], "owns the tables"),
        (["--role", str(make_url(superuser).username), "--db", owner], "superuser"),
        (["--role", ROLE, "--db", shop], f"connect as {ROLE}_owner"),
        (["--off", "--role", ROLE, "--db", owner], "--off"),
        (["--db", on_file(fact())], "PostgreSQL"),
    ):
        ended = onfile("db", "rls", *arguments)
        assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
        assert said in ended.err
    assert "onfile db upgrade" in early.err
