"""What has to be true of a database after `bench.crash` has killed those who wrote to it."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sqlalchemy import make_url, select, text

from bench.crash_writer import SHARED, SHARED_KEYS, Act, Diary, Directions, Told, text_of
from onfile.provider import ListMemories, SearchMemories
from onfile.recall.index import document_text
from onfile.recall.vectors import packed
from onfile.stores import SqlMemoryProvider, halfvec
from onfile.stores.derived import KEPT_CHANGES, agent_memory_change, agent_memory_revision, agent_memory_vector
from onfile.stores.health import vacuum
from onfile.stores.schema import agent_memory, agent_memory_receipt
from onfile.writes import key_identity, receipt_digest

_m = agent_memory.c
_ROW = (_m.id, _m.scope, _m.key, _m.text, _m.origin_thread_id, _m.origin_run_id, _m.origin_actor_ref)
_ASKED = "goes on in w0"


class Judge:
    """Reads the tables themselves, past the store that is on trial; collects what must not be."""

    def __init__(self, url: str, diaries: dict[str, Path]) -> None:
        self._url = url
        self._diaries = diaries
        self._provider = SqlMemoryProvider.from_url(url, Directions())
        self._committed_by: dict[str, int] = {}
        self.violations: Counter[str] = Counter()
        self.examples: dict[str, str] = {}
        self.seen: Counter[str] = Counter()
        """What the kills met: `committed`, `absent`, `idle`."""

    async def prepare(self) -> None:
        await self._provider.setup()

    async def connect_again(self) -> None:
        """Let go of connections to a server that is no more."""
        await self._provider.engine.dispose()

    async def aclose(self) -> None:
        await self._provider.aclose()

    def expect(self, condition: bool, kind: str, example: object) -> None:
        """Note a violation."""
        if not condition:
            self.violations[kind] += 1
            self.examples.setdefault(kind, str(example))

    async def after_kill(self, writer: str) -> None:
        """What the killed writer was about is there whole, or not at all."""
        undone = [one.act for one in Diary(self._diaries[writer]).read().values() if one.done is None]
        self.expect(len(undone) <= 1, "a writer did two things at once", undone)
        if not undone:
            self.seen["idle"] += 1
        for act in undone:
            committed = await self._whole_or_absent(act)
            self.seen["committed" if committed else "absent"] += 1
            if committed:
                self._committed_by[act.name] = time.monotonic_ns()
        # The index in this process has to keep up with all that is written, and is compared in the end.
        await self._found(self._provider)

    async def _whole_or_absent(self, act: Act) -> bool:
        if act.id is not None:
            gone = not await self._rows(_m.id == act.id)
            left = act.id in await self._vectors()
            self.expect(not (gone and left), "a forgotten fact left its vector", act)
            return gone
        # In this order: while the server may still be at it, a row is never seen before its receipt.
        signed = await self._signed(act)
        rows = await self._rows(_m.scope == act.scope, _m.key_identity == key_identity(act.key))
        signed_by_now = await self._signed(act)
        self.expect(len(rows) <= 1, "a key stands twice", act)
        mine = [row for row in rows if act.name in (row.origin_run_id, row.text.rpartition(" ")[2])]
        for row in mine:
            self._expect_of_one_act(row, act)
        self.expect(not (signed and not rows), "a receipt without its fact", act)
        self.expect(not (mine and not signed_by_now), "a fact without its receipt", act)
        return bool(signed_by_now)

    def _expect_of_one_act(self, row: Any, act: Act) -> None:
        origin = (row.origin_thread_id, row.origin_run_id, row.origin_actor_ref)
        wanted = (act.origin.thread_id, act.origin.run_id, act.origin.actor_ref)
        whole = row.text == text_of(act.name) and origin == wanted and (row.scope, row.key) == (act.scope, act.key)
        self.expect(whole, "a fact is a mixture", row)

    async def in_the_end(self) -> Counter[str]:
        """Everything, once all writers have done what was left undone. Answers what was counted."""
        told = [one for path in self._diaries.values() for one in Diary(path).read().values()]
        self.expect(all(one.done is not None for one in told), "an act was never done", "")
        rows = await self._rows()
        self._expect_own(told, rows)
        self._expect_shared(told, rows)
        await self._expect_receipts(told)
        without = await self._expect_vectors(rows)
        await self._expect_revisions(rows)
        await self._expect_sound()
        await self._expect_the_same_answers(rows)
        kinds = Counter(one.act.kind for one in told)
        return kinds + Counter(acknowledged=len(told), facts=len(rows), facts_without_a_vector=without)

    def _expect_own(self, told: list[Told], rows: list[Any]) -> None:
        """A writer's own scope holds what its acts, one after another, come to: nothing less and nothing more."""
        stands: dict[tuple[str, str], Told] = {}
        ids: dict[tuple[str, str], str] = {}
        forgotten: set[str] = set()
        for one in told:
            at = (one.act.scope, one.act.key)
            if one.act.kind == "forget":
                stands.pop(at, None)
                forgotten.add(str(one.act.id))
            elif one.act.kind != "shared":
                self.expect(ids.setdefault(at, str(one.id)) == one.id, "a correction became another record", one)
                stands[at] = one
        found: dict[tuple[str, str], list[Any]] = defaultdict(list)
        for row in rows:
            self.expect(row.id not in forgotten, "a forgotten fact is back", row)
            if row.scope != f"actor:{SHARED}" or row.key not in SHARED_KEYS:
                found[(row.scope, row.key)].append(row)
        for at, one in stands.items():
            self.expect(len(found[at]) == 1, "an acknowledged write stands not once", (one, len(found[at])))
            for row in found[at]:
                self._expect_of_one_act(row, one.act)
                self.expect(row.id == one.id, "a record has another id than was answered", one)
        for at in found.keys() - stands.keys():
            self.expect(not found[at], "a fact stands that nobody keeps", at)

    def _expect_shared(self, told: list[Told], rows: list[Any]) -> None:
        """A key that all write holds one act of one of them, and none that was over before another began."""
        for key in SHARED_KEYS:
            acts = {one.act.name: one for one in told if one.act.kind == "shared" and one.act.key == key}
            found = [row for row in rows if (row.scope, row.key) == (f"actor:{SHARED}", key)]
            self.expect(len(found) == bool(acts), "a shared key stands not once", (key, len(found)))
            for row in found:
                last = acts.get(str(row.origin_run_id))
                self.expect(last is not None, "a shared key holds what nobody wrote", row)
                if last is None:
                    continue
                self._expect_of_one_act(row, last.act)
                over = min(last.done or 0, self._committed_by.get(last.act.name, last.done or 0))
                later = [one for one in acts.values() if one.begun > over]
                self.expect(not later, "a later acknowledged write is lost", (last, later[:1]))

    async def _expect_receipts(self, told: Iterable[Told]) -> None:
        wanted = {_digest(one.act) for one in told if one.act.kind != "forget"}
        async with self._provider.engine.connect() as conn:
            found = set((await conn.execute(select(agent_memory_receipt.c.digest))).scalars())
        self.expect(wanted <= found, "a write has no receipt", len(wanted - found))
        self.expect(found <= wanted, "a receipt is nobody's", len(found - wanted))

    async def _expect_vectors(self, rows: list[Any]) -> int:
        """Each vector is of a text that stands. One that is missing is made by a reindex, and then none is."""
        await self._compare_vectors(rows)
        without = len(rows) - len(await self._vectors())
        async for _ in self._provider.reindex():
            pass
        await self._compare_vectors(rows)
        self.expect(len(await self._vectors()) == len(rows), "a reindex left a fact without a vector", without)
        return without

    async def _compare_vectors(self, rows: list[Any]) -> None:
        texts = {row.id: document_text(key=row.key, text=row.text) for row in rows}
        for id_, blob in (await self._vectors()).items():
            self.expect(id_ in texts, "a vector without its fact", id_)
            if id_ in texts:
                self.expect(blob == packed(Directions().of(texts[id_])), "a vector is of another text", id_)

    async def _expect_revisions(self, rows: list[Any]) -> None:
        """Revisions were counted without a gap, and each fact is what one of them was about."""
        async with self._provider.engine.connect() as conn:
            revisions = {row.scope: row.revision for row in await conn.execute(select(agent_memory_revision))}
            changes: dict[str, dict[int, str]] = defaultdict(dict)
            for scope, revision, id_ in await conn.execute(select(agent_memory_change)):
                changes[scope][revision] = id_
        self.expect(revisions.keys() == changes.keys(), "a scope has changes and no revision", revisions.keys())
        for scope, revision in revisions.items():
            kept = sorted(changes[scope])
            self.expect(kept == list(range(kept[0], revision + 1)), "a revision is missing", (scope, revision))
            self.expect(kept[0] == 1 or len(kept) >= KEPT_CHANGES, "revisions were dropped too soon", scope)
            if kept[0] == 1:
                about = set(changes[scope].values())
                missed = [row.id for row in rows if row.scope == scope and row.id not in about]
                self.expect(not missed, "a fact was written without a revision", missed)

    async def _expect_sound(self) -> None:
        """The database itself finds nothing broken in its files."""
        name = self._provider.engine.dialect.name
        async with self._provider.engine.connect() as conn:
            if name == "sqlite":
                said = (await conn.execute(text("PRAGMA integrity_check"))).scalars().all()
                self.expect(said == ["ok"], "integrity_check", said)
                said = (await conn.execute(text("PRAGMA foreign_key_check"))).all()
                self.expect(not said, "foreign_key_check", said)
            elif name == "postgresql":
                offered = text("SELECT count(*) FROM pg_available_extensions WHERE name = 'amcheck'")
                if (await conn.execute(offered)).scalar_one():
                    await conn.execute(text("CREATE EXTENSION IF NOT EXISTS amcheck"))
                    # Raises where an index and its table disagree.
                    await conn.execute(
                        text(
                            "SELECT bt_index_check(i.indexrelid, true) FROM pg_index i"
                            " JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam"
                            " WHERE i.indrelid::regclass::text LIKE 'agent_memory%' AND a.amname = 'btree'"
                        )
                    )
            else:
                said = (await conn.execute(text(f"CHECK TABLE {', '.join(_tables())} EXTENDED"))).all()
                self.expect(all(row[3] == "OK" for row in said), "CHECK TABLE", said)

    async def _expect_the_same_answers(self, rows: list[Any]) -> None:
        """A process that has searched all along, one that begins now and the table say the same."""
        fresh = SqlMemoryProvider.from_url(self._url, Directions())
        try:
            self.expect(
                await self._found(self._provider) == await self._found(fresh), "two processes find other facts", ""
            )
            scopes = [f"actor:{name}" for name in (*self._diaries, SHARED)]
            listed = await fresh.list(ListMemories(scopes=scopes, ctx=_anybody()))
            told = sorted((record.id, record.text) for record in listed)
            self.expect(told == sorted((row.id, row.text) for row in rows), "a list differs from the table", "")
        finally:
            await fresh.aclose()

    async def _found(self, provider: SqlMemoryProvider) -> list[str]:
        scopes = [f"actor:{name}" for name in (*self._diaries, SHARED)]
        request = SearchMemories(scopes=scopes, query=_ASKED, limit=50, ctx=_anybody())
        return [record.id for record in await provider.search(request)]

    async def left_in_the_file(self) -> int:
        """How many texts that are gone can still be read in SQLite's file, before a vacuum; after it none may.

        Not for the kills' sake: SQLite's secure_delete overlooks what it has copied while it spread rows over pages.
        """
        gone = self._gone()
        left = len(self._read(gone))
        await vacuum(self._provider.engine)
        await self.aclose()
        still = self._read(gone)
        self.expect(not still, "a text that is gone can be read in the file after a vacuum", still[:1])
        return left

    def _gone(self) -> list[str]:
        """The acts at the writers' own scopes whose texts were replaced or forgotten."""
        stands: dict[tuple[str, str], str] = {}
        gone: list[str] = []
        for path in self._diaries.values():
            for one in Diary(path).read().values():
                at = (one.act.scope, one.act.key)
                if one.act.kind != "shared" and at in stands:
                    gone.append(stands.pop(at))
                if one.act.kind in ("new", "replace"):
                    stands[at] = one.act.name
        return gone

    def _read(self, names: list[str]) -> list[str]:
        """Those acts whose texts begin somewhere in the file."""
        file = Path(make_url(self._url).database or "")
        content = b"".join(path.read_bytes() for path in file.parent.glob(file.name + "*"))
        return [name for name in names if f"begins {name} ".encode() in content]

    async def _rows(self, *where: Any) -> list[Any]:
        async with self._provider.engine.connect() as conn:
            return list((await conn.execute(select(*_ROW).where(*where))).all())

    async def _signed(self, act: Act) -> bool:
        receipt = select(agent_memory_receipt.c.digest).where(agent_memory_receipt.c.digest == _digest(act))
        async with self._provider.engine.connect() as conn:
            return (await conn.execute(receipt)).first() is not None

    async def _vectors(self) -> dict[str, bytes]:
        async with self._provider.engine.connect() as conn:
            kept = select(agent_memory_vector.c.memory_id, agent_memory_vector.c.vector)
            found = {row[0]: bytes(row[1]) for row in await conn.execute(kept)}
            if await halfvec.stands(conn):
                kept = select(halfvec.agent_memory_halfvec.c.memory_id, halfvec.SENT)
                found |= {row[0]: halfvec.from_sent(bytes(row[1])) for row in await conn.execute(kept)}
            return found


def _digest(act: Act) -> str:
    return receipt_digest(idempotency_key=act.name, scope=act.scope, identity=key_identity(act.key))


def _anybody() -> Any:
    return Act(name="", kind="shared", actor=SHARED, key="").ctx


def _tables() -> list[str]:
    return [
        table.name
        for table in (
            agent_memory,
            agent_memory_receipt,
            agent_memory_revision,
            agent_memory_change,
            agent_memory_vector,
        )
    ]
