"""A turn, once: the loop, its journal, the engines that keep it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .assistant import Assistant
    from .history import History
    from .inline import InlineJournal
    from .journal import (
        Journal,
        JournalEngine,
        JournalError,
        NewRun,
        NonDeterminismError,
        Run,
        RunFenced,
        RunHeld,
        RunSuspended,
        RunUnavailable,
    )
    from .pending import PendingCall
    from .polling import PollingWorker
    from .retrieval import EmbeddingReranker, Passage, Rerank, Reranker, Retrieval, Retrieve, Retriever
    from .runner import TurnResult, TurnRunner
    from .sql import SqlJournal
    from .tools import Tool, ToolContext, action_tool, read_tool

__all__ = [
    "Assistant",
    "EmbeddingReranker",
    "History",
    "InlineJournal",
    "Journal",
    "JournalEngine",
    "JournalError",
    "NewRun",
    "NonDeterminismError",
    "Passage",
    "PendingCall",
    "PollingWorker",
    "Rerank",
    "Reranker",
    "Retrieval",
    "Retrieve",
    "Retriever",
    "Run",
    "RunFenced",
    "RunHeld",
    "RunSuspended",
    "RunUnavailable",
    "SqlJournal",
    "Tool",
    "ToolContext",
    "TurnResult",
    "TurnRunner",
    "action_tool",
    "read_tool",
]

_PLACES = {
    "assistant": ("Assistant",),
    "history": ("History",),
    "inline": ("InlineJournal",),
    "pending": ("PendingCall",),
    "polling": ("PollingWorker",),
    "retrieval": ("EmbeddingReranker", "Passage", "Rerank", "Reranker", "Retrieval", "Retrieve", "Retriever"),
    "runner": ("TurnResult", "TurnRunner"),
    "sql": ("SqlJournal",),
    "tools": ("Tool", "ToolContext", "action_tool", "read_tool"),
}


def __getattr__(name: str) -> Any:
    """Load what is asked for: a journal can be read without a model's client being installed."""
    if name not in __all__:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    place = next((module for module, held in _PLACES.items() if name in held), "journal")
    try:
        return getattr(import_module(f".{place}", __name__), name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "pydantic_ai":
            raise
    msg = "turns need Pydantic AI's model classes: pip install 'onfile[runs]'"
    raise ModuleNotFoundError(msg, name="pydantic_ai")
