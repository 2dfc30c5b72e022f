"""What tests of memory need: a provider in this process, and the contract that every provider keeps."""

from .clause import Clause, ClauseFailed
from .contract import CLAUSES, ClauseResult, ConformReport, check, conform
from .memories import InMemoryMemoryProvider

__all__ = [
    "CLAUSES",
    "Clause",
    "ClauseFailed",
    "ClauseResult",
    "ConformReport",
    "InMemoryMemoryProvider",
    "check",
    "conform",
]
