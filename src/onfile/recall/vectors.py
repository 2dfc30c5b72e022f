"""Vectors: how one is kept in a row, and the ones of a scope held as one matrix."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

_SMALLEST = 64


def packed(vector: Sequence[float]) -> bytes | None:
    """Answer the vector at length one, as little-endian half floats; None when it points nowhere.

    Half precision moves a cosine by less than 0.001, and halves the table.
    """
    values = unit(vector)
    return None if values is None else struct.pack(f"<{len(values)}e", *values)


class VectorRows:
    """The vectors of one scope's facts, by slot; a slot without one is neither near nor far.

    Needs numpy.
    """

    __slots__ = ("_dimensions", "_has", "_matrix", "_numpy", "_size", "count")

    def __init__(self, dimensions: int, numpy: Any) -> None:
        self._numpy = numpy
        self._dimensions = dimensions
        self._matrix = numpy.zeros((0, dimensions), dtype=numpy.float32)
        self._has = numpy.zeros(0, dtype=bool)
        self._size = 0
        self.count = 0
        """How many slots have a vector."""

    def add(self, blobs: Sequence[bytes | None]) -> None:
        """Give the next slots their vectors; one of the wrong size counts as none."""
        numpy = self._numpy
        start, self._size = self._size, self._size + len(blobs)
        if self._size > len(self._has):
            self._grow(self._size)
        fitting = [(start + i, blob) for i, blob in enumerate(blobs) if blob and len(blob) == 2 * self._dimensions]
        if fitting:
            slots = [slot for slot, _ in fitting]
            values = numpy.frombuffer(b"".join(blob for _, blob in fitting), dtype="<f2")
            self._matrix[slots] = values.reshape(len(fitting), self._dimensions)
            self._has[slots] = True
            self.count += len(fitting)

    def drop(self, slot: int) -> None:
        """Forget a slot's vector, in every byte of it."""
        if self._has[slot]:
            self._has[slot] = False
            self._matrix[slot] = 0
            self.count -= 1

    def cosines(self, query: Sequence[float]) -> tuple[Any, Any] | None:
        """Compare a question with every slot: the cosines, and which of them mean something.

        Returns:
            Two arrays with a place for every slot; None when no slot has a vector.
        """
        numpy = self._numpy
        if not self.count:
            return None
        # einsum and not `@`: BLAS would start a thread per core for a millisecond's work, which on a
        # busy machine costs up to ninety times as much, and its setting is the host's.
        rows = self._matrix[: self._size]
        return numpy.einsum("ij,j->i", rows, numpy.asarray(query, dtype=numpy.float32)), self._has[: self._size]

    def marks(self) -> VectorMarks:
        """Answer which slots have a vector, for when the vectors are to be let go."""
        marks = VectorMarks(self._numpy)
        marks.add([b"" if has else None for has in self._has[: self._size].tolist()])
        return marks

    def _grow(self, size: int) -> None:
        numpy = self._numpy
        room = max(_SMALLEST, size if not len(self._has) else max(size, len(self._has) * 3 // 2))
        matrix = numpy.zeros((room, self._dimensions), dtype=numpy.float32)
        matrix[: len(self._matrix)] = self._matrix
        has = numpy.zeros(room, dtype=bool)
        has[: len(self._has)] = self._has
        self._matrix, self._has = matrix, has


class VectorMarks:
    """Which facts of one scope have a vector, where the vectors themselves stay in the database.

    Needs numpy.
    """

    __slots__ = ("_has", "_least", "_numpy", "_sampled", "_size", "count", "sample")

    def __init__(self, numpy: Any) -> None:
        self._numpy = numpy
        self._has = numpy.zeros(0, dtype=bool)
        self._size = 0
        self.count = 0
        """How many slots have a vector."""
        self.sample: Any | None = None
        """Some of the vectors, where an approximate answer has no other way to tell how cosines spread."""
        self._sampled: Any = None
        self._least = 0

    @property
    def has(self) -> Any:
        """Which slots have a vector."""
        return self._has[: self._size]

    def add(self, blobs: Sequence[bytes | None]) -> None:
        """Say of the next slots whether they have a vector: whatever is not None stands for one."""
        start, self._size = self._size, self._size + len(blobs)
        if self._size > len(self._has):
            grown = self._numpy.zeros(max(_SMALLEST, self._size * 3 // 2), dtype=bool)
            grown[:start] = self._has[:start]
            self._has = grown
        marks = [blob is not None for blob in blobs]
        self._has[start : self._size] = marks
        self.count += sum(marks)

    def drop(self, slot: int) -> None:
        """Forget that a slot has a vector, and the vector itself where it is in the sample."""
        if self._has[slot]:
            self._has[slot] = False
            self.count -= 1
            if self.sample is not None:
                kept = self._sampled != slot
                self._sampled = self._sampled[kept]
                self.sample = self.sample[kept] if len(self._sampled) >= self._least else None

    def keep_sample(self, slots: Sequence[int], vectors: Any) -> None:
        """Keep these slots' vectors as the sample, until too many of them are dropped."""
        self.sample, self._sampled = vectors, self._numpy.array(slots)
        self._least = max(1, len(vectors) // 2)


def unit(vector: Sequence[float]) -> list[float] | None:
    """Answer the vector at length one, or None when it points nowhere."""
    values = [float(value) for value in vector]
    length = math.sqrt(sum(value * value for value in values))
    if not length or not math.isfinite(length):
        return None
    return [value / length for value in values]
