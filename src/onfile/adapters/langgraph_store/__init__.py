"""LangGraph's `BaseStore`, both ways: one actor's facts as a store, and somebody's store as a provider of facts."""

from .labels import label
from .provider import LangGraphStoreProvider
from .view import ScopedStore

__all__ = ["LangGraphStoreProvider", "ScopedStore", "label"]
