"""The index of one scope: its facts' terms and vectors, held in memory and brought up to date by changes."""

from __future__ import annotations

import threading
from array import array
from typing import TYPE_CHECKING, Any, NamedTuple

from .lexical import Postings
from .tokens import tokenise
from .vectors import VectorMarks, VectorRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_FEW_DEAD = 64
_ALIVE_PER_DEAD = 3


class Indexed(NamedTuple):
    """What the index reads of one fact.

    A tuple, not a frozen dataclass: the first search of a scope makes one for every fact in it.
    """

    id: str
    identity: str
    """The identity of its key, unique within a scope."""
    key: str
    text: str
    pinned: bool
    updated_us: int
    """When the text was written, in microseconds since 1970."""
    expires_us: int | None = None
    """From when on it must not be found, in microseconds since 1970; None for never."""
    vector: bytes | None = None
    """Where an index does not hold vectors, anything but None says that there is one."""


class ScopeIndex:
    """All that a ranking needs to know of the facts at one scope; holds no text.

    Used under `lock`: the callers may be threads. `revision` is the scope's at the moment that was
    read from the database, and a search that sees a later one applies what changed since.
    """

    __slots__ = (
        *("_expiring", "_slots", "expired", "identities", "ids", "lock", "pinned", "postings", "revision"),
        *("updated", "vectors"),
    )

    def __init__(
        self, *, revision: int, dimensions: int = 0, numpy: Any | None = None, vectors_elsewhere: bool = False
    ) -> None:
        self.lock = threading.Lock()
        self.revision = revision
        self.postings = Postings()
        self.ids: list[str] = []
        self.identities: list[str] = []
        self.updated: array[int] = array("q")
        self.pinned: set[int] = set()
        self.vectors: VectorRows | VectorMarks | None = None
        if numpy is not None and dimensions:
            self.vectors = VectorMarks(numpy) if vectors_elsewhere else VectorRows(dimensions, numpy)
        self.expired: set[str] = set()
        """What was let go because it expired, and is in the database still."""
        self._slots: dict[str, int] = {}
        self._expiring: dict[str, int] = {}

    def __len__(self) -> int:
        return self.postings.living

    @property
    def worn(self) -> bool:
        """Whether so many facts were replaced that building the index again is due."""
        dead = self.postings.dead
        return dead > _FEW_DEAD and dead * _ALIVE_PER_DEAD > self.postings.living

    @property
    def lacks_vectors(self) -> bool:
        """Whether some fact has no vector although there is an embedder."""
        return self.vectors is not None and self.vectors.count < len(self)

    def living_slots(self) -> list[int]:
        """Answer the slots of the facts that are there."""
        return list(self._slots.values())

    def put(self, facts: Iterable[Indexed]) -> None:
        """Index facts, each in place of the same id's earlier state."""
        blobs: list[bytes | None] = []
        for fact in facts:
            self._drop(fact.id, upcoming=len(blobs))
            slot = self.postings.add(tokenise(f"{fact.key} {fact.text}"))
            self._slots[fact.id] = slot
            self.ids.append(fact.id)
            self.identities.append(fact.identity)
            self.updated.append(fact.updated_us)
            if fact.pinned:
                self.pinned.add(slot)
            if fact.expires_us is not None:
                self._expiring[fact.id] = fact.expires_us
            blobs.append(fact.vector)
        if self.vectors is not None:
            self.vectors.add(blobs)

    def apply(self, *, revision: int, facts: Sequence[Indexed], gone: Iterable[str]) -> None:
        """Bring the index to a revision. One that it has passed already changes nothing."""
        if revision <= self.revision:
            return
        for id_ in gone:
            self._drop(id_)
        self.put(facts)
        self.revision = revision

    def expire(self, now_us: int) -> None:
        """Let go of what has expired, for good: a new expiry comes as a change."""
        if self._expiring:
            with self.lock:
                for id_ in [id_ for id_, expires_us in self._expiring.items() if expires_us <= now_us]:
                    self._drop(id_)
                    self.expired.add(id_)

    def let_go_of_vectors(self) -> None:
        """Know from now on only which facts have a vector."""
        with self.lock:
            if isinstance(self.vectors, VectorRows):
                self.vectors = self.vectors.marks()

    def living(self, numpy: Any) -> Any:
        """Answer which slots hold a fact, as an array of truths."""
        lengths = self.postings.lengths
        return numpy.frombuffer(lengths, dtype=numpy.float32) >= 0 if lengths else numpy.zeros(0, dtype=bool)

    def placed(self, values: Mapping[str, float]) -> tuple[list[int], list[float]]:
        """Answer the slots of the ids that are there, and their values."""
        found = [(slot, value) for id_, value in values.items() if (slot := self._slots.get(id_)) is not None]
        return [slot for slot, _ in found], [value for _, value in found]

    def _drop(self, id_: str, *, upcoming: int = 0) -> None:
        self.expired.discard(id_)
        slot = self._slots.pop(id_, None)
        if slot is None:
            return
        self._expiring.pop(id_, None)
        self.postings.drop(slot)
        self.pinned.discard(slot)
        # Slots of the batch under way have no vector yet; ids come once in a batch.
        if self.vectors is not None and slot < len(self.identities) - upcoming:
            self.vectors.drop(slot)
        self.ids[slot] = self.identities[slot] = ""


def document_text(*, key: str, text: str) -> str:
    """Answer what is embedded of a fact: its text, led by its key where the key says more than the text.

    `units: kilometres` needs its key. A key made of the text's own first words would only count them
    twice, which was measured to cost three points of recall on preferences.
    """
    if set(tokenise(key)) <= set(tokenise(text)):
        return text
    return f"{key.replace('-', ' ').replace('_', ' ')}: {text}"
