"""The stores that onfile is measured beside, each used as its documentation shows, on the same vectors.

They search one namespace or user at a time, so that a question over several scopes asks each of
them and merges by score, which costs them nothing but the extra calls.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from bench.datasets import Fact


def use_loadable_sqlite() -> None:
    """Use pysqlite3 for everything: LangGraph's store loads an extension, which many Pythons' sqlite3 cannot.

    Called before anything opens a database: SQLAlchemy and the peers import their driver when they do.
    """
    try:
        import pysqlite3
    except ModuleNotFoundError:
        return
    sys.modules["sqlite3"] = pysqlite3
    sys.modules["sqlite3.dbapi2"] = pysqlite3.dbapi2


class Peer(Protocol):
    """What is asked of each store."""

    name: str

    def fill(self, facts: Sequence[Fact]) -> None:
        """Take all facts."""

    def keys(self, scopes: Sequence[str], query: str, limit: int) -> list[str]:
        """The keys of the best facts at the scopes, best first."""

    def close(self) -> None:
        """Give back files and threads."""


def merged(found: list[tuple[float, str]], limit: int) -> list[str]:
    """Keys by score, each once."""
    return list(dict.fromkeys(key for _, key in sorted(found, key=lambda one: -one[0])))[:limit]


class _LangGraph:
    store: Any

    def fill(self, facts: Sequence[Fact]) -> None:
        from langgraph.store.base import PutOp

        for start in range(0, len(facts), 500):
            self.store.batch(
                [PutOp((f.scope,), f.key, {"text": f.text}, index=["text"]) for f in facts[start : start + 500]]
            )

    def keys(self, scopes: Sequence[str], query: str, limit: int) -> list[str]:
        found: list[tuple[float, str]] = []
        for scope in scopes:
            found += [(item.score or 0.0, item.key) for item in self.store.search((scope,), query=query, limit=limit)]
        return merged(found, limit)


class LangGraphMemory(_LangGraph):
    """`langgraph.store.memory.InMemoryStore`."""

    name = "LangGraph InMemoryStore"

    def __init__(self, embedder: Any) -> None:
        from langgraph.store.memory import InMemoryStore

        index = {"dims": embedder.dimensions, "embed": lambda texts: [embedder.of(t).tolist() for t in texts]}
        self.store = InMemoryStore(index=index)

    def fill(self, facts: Sequence[Fact]) -> None:
        # One by one: a batch in which two facts have the same text fails (langgraph-checkpoint 4.3.2).
        for fact in facts:
            self.store.put((fact.scope,), fact.key, {"text": fact.text}, index=["text"])

    def close(self) -> None:
        """Nothing is open."""


class LangGraphSqlite(_LangGraph):
    """`langgraph.store.sqlite.SqliteStore` on a file, with sqlite-vec."""

    name = "LangGraph SqliteStore"

    def __init__(self, embedder: Any) -> None:
        from langgraph.store.sqlite import SqliteStore

        self._folder = tempfile.TemporaryDirectory()
        index = {"dims": embedder.dimensions, "embed": lambda texts: [embedder.of(t).tolist() for t in texts]}
        self._context = SqliteStore.from_conn_string(str(Path(self._folder.name) / "store.db"), index=index)
        self.store = self._context.__enter__()
        self.store.setup()

    def close(self) -> None:
        self._context.__exit__(None, None, None)
        self._folder.cleanup()


class Mem0:
    """`mem0.Memory` with infer=False, on a Qdrant in this process and on disk, its default."""

    name = "mem0 (infer=False)"

    def __init__(self, embedder: Any) -> None:
        import os

        self._folder = tempfile.TemporaryDirectory()
        os.environ["MEM0_TELEMETRY"] = "False"
        os.environ["MEM0_DIR"] = self._folder.name
        os.environ.setdefault("OPENAI_API_KEY", "never-called")
        from mem0 import Memory

        store = {
            "provider": "qdrant",
            "config": {"path": f"{self._folder.name}/q", "embedding_model_dims": embedder.dimensions, "on_disk": True},
        }
        self._memory: Any = Memory.from_config(
            {"vector_store": store, "history_db_path": f"{self._folder.name}/history.db"}
        )
        self._memory.embedding_model = _Mem0Embedding(embedder)

    def fill(self, facts: Sequence[Fact]) -> None:
        for fact in facts:
            self._memory.add(fact.text, user_id=fact.scope, metadata={"key": fact.key}, infer=False)

    def keys(self, scopes: Sequence[str], query: str, limit: int) -> list[str]:
        found: list[tuple[float, str]] = []
        for scope in scopes:
            # Its default threshold of 0.1 would drop weak matches, which costs it recall.
            answer = self._memory.search(query, top_k=limit, filters={"user_id": scope}, threshold=0.0)
            found += [(one["score"], one["metadata"]["key"]) for one in answer["results"]]
        return merged(found, limit)

    def close(self) -> None:
        self._folder.cleanup()


class _Mem0Embedding:
    def __init__(self, embedder: Any) -> None:
        self._embedder = embedder
        self.config = type("Config", (), {"embedding_dims": embedder.dimensions})()

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:  # noqa: ARG002  # mem0 passes it
        return self._embedder.of(text).tolist()

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:  # noqa: ARG002  # mem0 passes it
        return [self.embed(text) for text in texts]


PEERS: tuple[type[Any], ...] = (LangGraphSqlite, LangGraphMemory, Mem0)


def installed(peer: type[Any], embedder: Any) -> Any | None:
    """The peer, or None with a line that says why it is left out."""
    try:
        return peer(embedder)
    except Exception as error:  # noqa: BLE001  # whatever is missing, the others are measured
        print(f"left out: {peer.name} ({type(error).__name__}: {error})")
        return None
