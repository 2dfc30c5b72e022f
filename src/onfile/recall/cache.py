"""The indexes that a process keeps: the scopes used last, up to so many facts in all."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .index import ScopeIndex

DEFAULT_FACTS = 250_000
"""About half a kilobyte each with words alone, and four bytes more per dimension with vectors."""
_INDEX_COSTS = 8
"""What an index costs beside its facts, so that a million people without a fact are not kept for nothing."""


class IndexCache:
    """Scope indexes, least recently used out first. Never asked whether it is up to date: the caller is.

    A scope that alone holds more facts than fit is kept as the only one, so that a big tenant is not
    read anew for every turn.
    """

    def __init__(self, facts: int = DEFAULT_FACTS) -> None:
        self._facts = facts
        self._indexes: OrderedDict[str, ScopeIndex] = OrderedDict()
        self._costs: dict[str, int] = {}
        self._held = 0
        self._lock = threading.Lock()

    def get(self, scope: str) -> ScopeIndex | None:
        """Answer the scope's index, if it is kept."""
        with self._lock:
            index = self._indexes.get(scope)
            if index is not None:
                self._indexes.move_to_end(scope)
            return index

    def keep(self, scope: str, index: ScopeIndex) -> ScopeIndex:
        """Keep an index, unless a later one of the same scope is kept already; answer the one that is."""
        with self._lock:
            standing = self._indexes.get(scope)
            if standing is not None and not standing.worn and standing.revision >= index.revision:
                return standing
            self._release(scope)
            self._indexes[scope] = index
            self._costs[scope] = len(index) + _INDEX_COSTS
            self._held += self._costs[scope]
            while self._held > self._facts and len(self._indexes) > 1:
                self._release(next(iter(self._indexes)))
            return index

    def drop(self, scope: str) -> None:
        """Read the scope from the database the next time."""
        with self._lock:
            self._release(scope)

    def _release(self, scope: str) -> None:
        if self._indexes.pop(scope, None) is not None:
            self._held -= self._costs.pop(scope)
