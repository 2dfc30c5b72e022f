"""How much words weigh beside vectors, for each family of embedding models and each script.

A fact's score is its cosine, in standard deviations of the cosines of all facts in scope, plus the
weight times its BM25. Deviations, because models differ in how wide their cosines spread: unrelated
texts come to 0.1 with MiniLM and to 0.78 with E5. `docs/recall.md` tells how the weights were found.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Protocol

CONTEXTUAL = 0.14
"""Transformers: they know what a sentence means, words only sharpen it."""
STATIC = 0.3
"""Tables of word vectors (model2vec, WordLlama): weaker on meaning, so words weigh twice as much."""
UNREAD = 1.5
"""A script that the model was never shown: its vectors are noise, so words carry the ranking."""

_STATIC_NAMES = re.compile(r"potion|wordllama|model2vec|m2v|supercat|glove|word2vec|fasttext|static", re.IGNORECASE)
_LATIN_ONLY_NAMES = re.compile(
    r"all-?minilm|all-mpnet|multi-qa|msmarco|paraphrase-(?!multilingual)|bge-(?:micro|small|base|large)-en|gte-(?:small|base|large)$"
    r"|(?<!multilingual-)e5-(?:small|base|large)(?:-v2)?$|-en(?:-|$)|english|wordllama|supercat|potion-(?!multilingual)"
    r"|nomic-embed-text-v1|snowflake-arctic-embed-(?:xs|s|m|l)$|mxbai-embed-large|jina-embedding-.*-en",
    re.IGNORECASE,
)


class Named(Protocol):
    """The part of an embedder that its family is told from."""

    @property
    def model(self) -> str:
        """The model's name, as it is stored with every vector."""
        ...


def lexical_weight(embedder: Named, query: str) -> float:
    """Answer how much BM25 weighs beside this embedder's cosines for a question in this script.

    An embedder may say so itself: `lexical_weight` (a number), and `scripts`, the writing systems
    that it was trained on, as they begin Unicode's character names (`{"LATIN", "CYRILLIC"}`).
    """
    if not _reads(embedder, query):
        return UNREAD
    told = getattr(embedder, "lexical_weight", None)
    if isinstance(told, int | float):
        return float(told)
    return STATIC if _STATIC_NAMES.search(embedder.model) else CONTEXTUAL


def _reads(embedder: Named, query: str) -> bool:
    scripts = getattr(embedder, "scripts", None)
    if scripts is None:
        if not _LATIN_ONLY_NAMES.search(embedder.model):
            return True
        scripts = {"LATIN"}
    letters = [character for character in query if character.isalpha()]
    foreign = sum(script_of(character) not in scripts for character in letters)
    return 2 * foreign <= len(letters)


def script_of(letter: str) -> str:
    """Answer the first word of a letter's Unicode name: LATIN, CJK, HIRAGANA, THAI."""
    return "LATIN" if letter.isascii() else unicodedata.name(letter, "?").split(" ", 1)[0].removesuffix("-")
