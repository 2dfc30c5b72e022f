"""Django: a store on its ORM that keeps the whole contract, and the routes as a Django user would have them."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from .installed import needs

needs("django")
import_module("tests.adapters.django_host")  # configures Django, which its models need

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection, connections, transaction
from django.test import AsyncClient, Client, override_settings

from onfile import Actor, Memory, ScopeContext
from onfile.adapters.django.models import Fact, Receipt
from onfile.adapters.django.provider import DjangoMemoryProvider
from onfile.blocking import Blocking
from onfile.stores import SqlMemoryProvider
from onfile.testing import CLAUSES, check

from .behaviour import ANA
from .scripts import BrokenProvider

CTX = ScopeContext(actor=ANA)
HOST = {"ACTOR": "tests.adapters.django_host.header_actor"}


def use(file: Path) -> None:
    """Point Django's one database at a file, in every thread."""
    connections.close_all()
    connections.settings["default"]["NAME"] = str(file)
    for alias in connections:
        connections[alias].settings_dict["NAME"] = str(file)


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated database, to copy."""
    file = tmp_path_factory.mktemp("django") / "migrated.db"
    use(file)
    call_command("migrate", verbosity=0)
    connections.close_all()
    return file


@pytest.fixture
def database(tmp_path: Path, migrated: Path) -> Iterator[Path]:
    """A migrated database on a file of its own."""
    file = tmp_path / "django.db"
    shutil.copy(migrated, file)
    use(file)
    yield file
    connections.close_all()


@pytest.mark.parametrize("clause", CLAUSES, ids=str)
def test_the_django_store_keeps(clause: Any, database: Path):
    @asynccontextmanager
    async def empty() -> Any:
        yield DjangoMemoryProvider()

    # As a sync view calls it: the work is done on this thread's connection.
    result = async_to_sync(check)(clause, empty)
    if result.status == "skipped":
        pytest.skip(result.reason)

    assert result.status == "passed", result.reason


def publish(text: str, *, key: str = "units", actor: Actor = ANA, scope: str | None = None) -> str:
    memory = Memory(DjangoMemoryProvider())
    ctx = ScopeContext(actor=actor)
    at = scope or f"actor:{actor.id}"
    done = async_to_sync(memory.publish)(scope=at, key=key, text=text, ctx=ctx, elevated=True)
    assert done.record, done.error
    return done.record.id


def test_twelve_threads_that_write_one_key_leave_one_fact_and_lose_no_call(database: Path):
    # given one key and twelve threads, each with a connection of its own
    def write(number: int) -> bool:
        try:
            return bool(publish(f"number {number}"))
        finally:
            connections.close_all()

    # when all write
    with ThreadPoolExecutor(12) as pool:
        assert all(pool.map(write, range(12)))

    # then one fact stands
    (fact,) = Fact.objects.all()
    assert fact.text.startswith("number ")


def test_the_migrations_make_what_the_models_say():
    call_command("makemigrations", "onfile", check=True, dry_run=True, stdout=StringIO())


def test_a_write_is_part_of_the_host_s_own_transaction(database: Path):
    # given a host that rolls back
    with transaction.atomic():
        publish("kilometres")
        transaction.set_rollback(True)

    # then nothing is on file, the receipt included
    assert not Fact.objects.exists() and not Receipt.objects.exists()


def test_what_was_forgotten_or_overwritten_is_in_no_byte_of_the_files(database: Path):
    # given a database with a write-ahead log, as busy sites run it
    connection.cursor().execute("PRAGMA journal_mode = WAL")
    gone = publish("the-vault-opens-at-noon", key="vault")
    publish("the-safe-opens-at-dawn", key="safe")

    # when one is forgotten and the other corrected
    forget = Memory(DjangoMemoryProvider()).forget
    assert async_to_sync(forget)(gone, CTX).ok
    publish("no longer", key="safe")

    # then neither text can be found, while the connection is still open
    files = b"".join(file.read_bytes() for file in database.parent.glob("django.db*"))
    assert b"opens-at" not in files and b"no longer" in files


@override_settings(ONFILE=HOST)
@pytest.mark.parametrize("door", ["wsgi", "asgi"])
def test_a_person_reads_and_deletes_what_is_theirs_and_learns_of_nothing_else(database: Path, door: str):
    # given facts of two people and of their organisation
    mine, others = publish("lentils"), publish("tofu", actor=Actor(id="bo", tenant_ref="acme"))
    wide = publish("kilometres", key="distance", scope="tenant:acme")

    def ask(method: str, path: str, actor: str | None = None) -> Any:
        headers = {"X-Actor": actor} if actor else {}
        if door == "wsgi":
            return getattr(Client(), method)(path, headers=headers)
        return async_to_sync(getattr(AsyncClient(), method))(path, headers=headers)

    # when Ana reads, then it is hers and her organisation's
    read = ask("get", "/agent/memories", "ana")
    assert {entry["text"] for entry in read.json()} == {"lentils", "kilometres"}
    assert read.headers["cache-control"] == "no-store"
    assert ask("get", "/agent/memories").status_code == 401

    # and she deletes her own only; what she cannot see does not exist
    missing = ask("delete", f"/agent/memories/{others}", "ana")
    never = ask("delete", "/agent/memories/mem%0Anever/%00", "ana")
    assert missing.status_code == never.status_code == 404 and missing.content == never.content
    wider = ask("delete", f"/agent/memories/{wide}", "ana")
    assert wider.status_code == 403 and wide not in wider.text
    taken = [json.loads(line) for line in ask("get", "/agent/memory-export", "ana").content.splitlines()]
    assert [line["text"] for line in taken] == ["lentils"]
    assert ask("delete", f"/agent/memories/{mine}", "ana").json() == {"forgotten": True}
    assert ask("delete", "/agent/memories", "ana").json() == {"forgotten": 0}
    assert ask("delete", "/agent/memories").status_code == 401
    assert {row.text for row in Fact.objects.all()} == {"tofu", "kilometres"}


def test_without_settings_the_signed_in_user_is_the_actor_by_primary_key(database: Path):
    user = User.objects.create_user("ana", password="x")
    publish("lentils", actor=Actor(id=str(user.pk)))
    client = Client(enforce_csrf_checks=True)

    assert client.get("/agent/memories").status_code == 401
    client.force_login(user)
    (entry,) = client.get("/agent/memories").json()
    # and Django's own protection against forged requests stands before a deletion
    assert client.delete(f"/agent/memories/{entry['id']}").status_code == 403
    assert Fact.objects.count() == 1


def test_another_store_serves_the_same_routes_through_the_blocking_door(tmp_path: Path, database: Path):
    provider = SqlMemoryProvider.from_url(f"sqlite+aiosqlite:///{tmp_path}/other.db")
    with Blocking(Memory(provider)) as memory:
        memory.run(provider.setup())
        memory.publish(scope="actor:ana", key="lunch", text="lentils", ctx=CTX)

        with override_settings(ONFILE={**HOST, "MEMORY": memory}):
            (entry,) = Client(headers={"X-Actor": "ana"}).get("/agent/memories").json()

    assert entry["text"] == "lentils"


def test_a_store_that_fails_is_no_empty_page(database: Path, caplog: pytest.LogCaptureFixture):
    with override_settings(ONFILE={**HOST, "MEMORY": Memory(BrokenProvider())}):
        answer = Client(headers={"X-Actor": "ana"}).get("/agent/memories")

    assert answer.status_code == 500
    assert answer.json()["detail"].startswith("What is on file could not be reached")


def test_an_administrator_reads_pins_and_deletes_and_cannot_change_what_a_fact_says(database: Path):
    # given an administrator and a fact
    admin = User.objects.create_superuser("root", password="x")
    fact_id = publish("kilometres")
    client = Client()
    client.force_login(admin)

    # when they open the list and the fact
    assert b"kilometres" in client.get("/admin/onfile/fact/").content
    before = Fact.objects.get()
    page = f"/admin/onfile/fact/{fact_id}/change/"
    assert b'name="text"' not in client.get(page).content

    # then a pin is all that a form can change, and it moves no date
    assert client.post(page, {"pinned": "on", "text": "miles"}).status_code == 302
    after = Fact.objects.get()
    assert (after.pinned, after.text, after.updated_at) == (True, "kilometres", before.updated_at)
    assert client.get("/admin/onfile/fact/add/").status_code == 403
    client.post(f"/admin/onfile/fact/{fact_id}/delete/", {"post": "yes"})
    assert not Fact.objects.exists()


def test_a_fact_s_own_words_are_in_no_name_of_it(database: Path):
    publish("the-vault-opens-at-noon")

    assert "vault" not in str(Fact.objects.get()) + repr(Fact.objects.get())


def test_the_tables_are_the_app_s_own(database: Path):
    with sqlite3.connect(database) as open_file:
        names = {name for (name,) in open_file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    open_file.close()

    assert {"onfile_fact", "onfile_receipt"} <= names


async def test_a_memory_on_an_async_store_serves_the_routes_on_the_server_s_own_event_loop(tmp_path: Path):
    # given a memory whose connections belong to the loop that the server runs in
    provider = SqlMemoryProvider.from_url(f"sqlite+aiosqlite:///{tmp_path}/other.db")
    await provider.setup()
    memory = Memory(provider)
    await memory.publish(scope="actor:ana", key="lunch", text="lentils", ctx=CTX)

    # when a person asks, under ASGI
    with override_settings(ONFILE={**HOST, "MEMORY": memory}):
        answers = [await AsyncClient().get("/agent/memories", headers={"X-Actor": name}) for name in ("ana", "bo")]

    # then each sees their own
    assert [[entry["text"] for entry in answer.json()] for answer in answers] == [["lentils"], []]
    await provider.aclose()
