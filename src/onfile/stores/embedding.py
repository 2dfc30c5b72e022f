"""Vectors for facts and questions: asked for outside every transaction, and never at the price of a fact."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from sqlalchemy import bindparam, select

from ..errors import OnfileError
from ..recall.index import document_text
from ..recall.vectors import packed, unit
from ..text import LONGEST_TOKEN
from . import halfvec
from .derived import drop_vectors, note_changes
from .schema import agent_memory
from .transactions import EVERY_SCOPE
from .vectors import BYTES, HALVES, row_of_vector

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from ..recall import Embedder
    from ..records import MemoryRecord
    from .transactions import Database, Transaction
    from .vectors import VectorPlace

logger = logging.getLogger(__name__)

QUERY_SECONDS = 5.0
"""How long a turn waits for its question's vector before words do alone."""
DOCUMENT_SECONDS = 30.0
"""How long a write waits for its fact's vector, the fact being kept already."""
_SILENT_SECONDS = 60.0

m = agent_memory.c

# Held until the vector is written, so that it cannot be one of a text that was replaced meanwhile.
_STANDING: Any = (
    select(m.id, m.scope, m.key, m.text).where(m.id.in_(bindparam("ids", expanding=True))).with_for_update()
)


class EmbedderFailed(OnfileError):  # noqa: N818  # named for what happened, as its siblings are
    """The embedder raised, took too long, or answered something that is no vector of its dimensions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReindexProgress:
    """How far a reindex is, in facts."""

    done: int
    total: int
    """How many had no vector of this model when it began."""


@dataclass(frozen=True, slots=True)
class _Text:
    """A text to embed, and the row that it must still be in when its vector is kept."""

    id: str
    scope: str
    key: str
    text: str


class Embedding:
    """A provider's embedder, with what to do when it fails: nothing is lost, words find the fact."""

    def __init__(self, database: Database, embedder: Embedder | None) -> None:
        self._database = database
        self._told = -_SILENT_SECONDS
        self._failed = -_SILENT_SECONDS
        self._told_where = False
        self._mending: asyncio.Task[None] | None = None
        self.numpy = _numpy()
        self.embedder = _usable(embedder, self.numpy)
        self.model = "" if self.embedder is None else self.embedder.model
        self.dimensions = 0 if self.embedder is None else self.embedder.dimensions

    async def place(self, conn: AsyncConnection) -> VectorPlace:
        """Answer where this database keeps its vectors; once, say in the log that it lacks pgvector."""
        if await halfvec.stands(conn):
            return HALVES if self.dimensions <= halfvec.MOST_DIMENSIONS else BYTES
        if conn.dialect.name == "postgresql" and self.embedder is not None and not self._told_where:
            self._told_where = True
            logger.warning(
                "without pgvector, vectors are kept as bytes and compared in this process, which holds all those of a "
                "scope in memory: %s",
                await halfvec.why_missing(conn),
            )
        return BYTES

    async def of_query(self, text: str) -> Sequence[float] | None:
        """Answer the question's vector at length one, or None, with a line in the log, when there is none."""
        if self.embedder is None:
            return None
        try:
            async with asyncio.timeout(QUERY_SECONDS):
                vector = await self.embedder.embed_query(text)
            self._check([vector], 1)
        except Exception as error:  # noqa: BLE001  # whatever it raises, the turn goes on with words
            self._tell(error, "this turn was ranked by words alone")
            return None
        return unit(vector)

    async def keep(self, record: MemoryRecord) -> None:
        """Embed a fact that was just written and keep its vector, if its text still stands then."""
        if self.embedder is None:
            return
        try:
            await self._keep([_Text(record.id, record.scope, record.key, record.text)])
        except EmbedderFailed as error:
            self._failed = time.monotonic()
            self._tell(error.__cause__ or error, "the fact is kept and found by words; `onfile reindex` fills the gap")

    def mend(self, scopes: Sequence[str]) -> None:
        """Begin to embed some facts at these scopes that were kept without a vector; nobody waits for it.

        What a search met: facts that were kept within another's transaction, or while the embedder
        was down. A minute after a failure at the earliest.
        """
        resting = time.monotonic() - self._failed < _SILENT_SECONDS
        if self.embedder is None or resting or (self._mending is not None and not self._mending.done()):
            return
        self._mending = asyncio.get_running_loop().create_task(self._mend(list(scopes)), name="onfile: embed")

    async def _mend(self, scopes: Sequence[str]) -> None:
        named = {"of_model": self.model, "of_dimensions": self.dimensions, "after": "", "scopes": scopes}

        async def missing(conn: AsyncConnection) -> list[_Text]:
            without_at = (await self.place(conn)).without_at
            return [_Text(*row) for row in (await conn.execute(without_at, named)).all()]

        try:
            texts = await self._database.read(missing, scopes=scopes)
            if texts:
                await self._keep(texts)
        except Exception as error:  # noqa: BLE001  # the next search tries again
            self._failed = time.monotonic()
            self._tell(error.__cause__ or error, "some facts are found by words only; it is tried again later")

    async def settle(self) -> None:
        """Let go of what is under way in the background."""
        task, self._mending = self._mending, None
        if task is not None and not task.done() and task.get_loop() is asyncio.get_running_loop():
            task.cancel()
            await asyncio.wait([task])

    async def reindex(self) -> AsyncIterator[ReindexProgress]:
        """Give every fact without a vector of this model its vector, reporting after each batch.

        Broken off, it goes on where it stopped when it is called again: what is missing is told
        from the database. Vectors of another model are replaced.

        Raises:
            EmbedderFailed: The embedder cannot be used, so there is no point in going on.
        """
        if self.embedder is None:
            msg = "there is no embedder, so there is nothing to index; give the provider one"
            raise EmbedderFailed(msg)
        named = {"of_model": self.model, "of_dimensions": self.dimensions, "after": ""}

        async def count(conn: AsyncConnection) -> int:
            return (await conn.execute((await self.place(conn)).count_without, named)).scalar_one()

        async def take_over(transaction: Transaction) -> None:
            if await halfvec.stands(transaction.conn):
                await transaction.conn.run_sync(halfvec.move)

        await self._database.transact(take_over, scopes=EVERY_SCOPE)
        done, total = 0, await self._database.read(count, scopes=EVERY_SCOPE)
        yield ReindexProgress(done=done, total=total)
        while True:

            async def missing(conn: AsyncConnection) -> list[_Text]:
                without = (await self.place(conn)).without
                return [_Text(*row) for row in (await conn.execute(without, named)).all()]

            texts = await self._database.read(missing, scopes=EVERY_SCOPE)
            if not texts:
                return
            await self._keep(texts)
            named["after"] = texts[-1].id
            done += len(texts)
            yield ReindexProgress(done=done, total=max(total, done))

    async def _keep(self, texts: Sequence[_Text]) -> None:
        embedder = cast("Embedder", self.embedder)
        try:
            async with asyncio.timeout(DOCUMENT_SECONDS):
                vectors = await embedder.embed_documents([document_text(key=one.key, text=one.text) for one in texts])
            self._check(vectors, len(texts))
            blobs = {one: packed(vector) for one, vector in zip(texts, vectors, strict=True)}
        except Exception as error:
            msg = f"the embedder failed ({type(error).__name__}); call reindex again to go on where it stopped"
            raise EmbedderFailed(msg) from error

        async def work(transaction: Transaction) -> None:
            conn = transaction.conn
            standing = (await conn.execute(_STANDING, {"ids": [one.id for one in texts]})).all()
            fresh = {one: blob for row in standing if (blob := blobs.get(one := _Text(*row)))}
            if not fresh:
                return
            await drop_vectors(conn, [one.id for one in fresh])
            place, tag = await self.place(conn), {"model": self.model, "dimensions": self.dimensions}
            rows = [
                row_of_vector(place, memory_id=one.id, scope=one.scope, tag=tag, blob=blob)
                for one, blob in fresh.items()
            ]
            await conn.execute(place.keep, rows)
            await note_changes(transaction, [(one.id, one.scope) for one in fresh])

        await self._database.transact(work, scopes=list({one.scope for one in texts}))

    def _check(self, vectors: Sequence[Sequence[float]], count: int) -> None:
        sizes = {len(vector) for vector in vectors}
        if len(vectors) != count or sizes != {self.dimensions}:
            got = f"{len(vectors)} vectors of {sorted(sizes)} dimensions"
            msg = f"{count} texts came back as {got}, not of {self.dimensions}"
            raise ValueError(msg)

    def _tell(self, error: BaseException, consequence: str) -> None:
        # One line a minute: an embedder that is down is asked by every turn. Never with the error's
        # own words, which may quote the text.
        now = time.monotonic()
        if now - self._told >= _SILENT_SECONDS:
            self._told = now
            logger.warning("the embedder %s failed (%s): %s", self.model, type(error).__name__, consequence)


def _numpy() -> Any | None:
    try:
        import numpy  # an extra; words are ranked without it too, only slower
    except ModuleNotFoundError:
        return None
    return numpy


def _usable(embedder: Embedder | None, numpy: Any | None) -> Embedder | None:
    if embedder is None:
        return None
    if not isinstance(embedder.model, str) or not 0 < len(embedder.model) <= LONGEST_TOKEN:  # pyright: ignore[reportUnnecessaryIsInstance]  # hosts pass untyped objects
        msg = f"an embedder's model is a name of at most {LONGEST_TOKEN} characters; it is stored with every vector"
        raise ValueError(msg)
    if numpy is None:
        logger.warning("vectors need numpy, so facts are found by words alone: pip install 'onfile[vectors]'")
        return None
    return embedder
