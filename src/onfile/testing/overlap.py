"""Word overlap: the plainest relevance there is, for the in-memory provider's `search`."""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

# Scripts that are written without spaces, so that a "word" is any two neighbouring characters.
_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x2E80, 0x2FFF),  # CJK radicals
    (0x3005, 0x3007),  # ideographic iteration mark, closing mark, zero
    (0x3040, 0x31FF),  # Hiragana, Katakana, Bopomofo
    (0x3400, 0x4DBF),  # CJK extension A
    (0x4E00, 0x9FFF),  # CJK
    (0xAC00, 0xD7A3),  # Hangul: spaced, but its particles are glued to the noun
    (0xF900, 0xFAFF),  # CJK compatibility
    (0x20000, 0x3FFFF),  # CJK extensions B and later
)
# Combining classes of nukta, kana voicing and virama: without these marks another letter stands there.
_LETTER_MAKING = frozenset({0, 7, 8, 9})


def query_words(text: str) -> frozenset[str]:
    """Answer the words to look for: a lone ideograph is one, a run of them is its pairs."""
    return frozenset(_words(text, singles=False))


def fact_words(text: str) -> frozenset[str]:
    """Answer the words that a fact can be found by: as for a query, and each ideograph alone."""
    return frozenset(_words(text, singles=True))


def overlap_scores(query: str, facts: Sequence[frozenset[str]]) -> list[float]:
    """Score each fact by the query's words that it holds, a rare word counting more than a common one.

    Returns:
        One number per fact, 0 for no word in common. Each shared word adds log(1 + facts / facts
        that hold it), the inverse document frequency of Spaerck Jones (1972), smoothed.
    """
    asked = query_words(query)
    holders = Counter(word for words in facts for word in words & asked)
    weights = {word: math.log1p(len(facts) / held) for word, held in holders.items()}
    return [_sum(weights, words & asked) for words in facts]


def _sum(weights: Mapping[str, float], words: Iterable[str]) -> float:
    # fsum is exact, so the order in which a set hands out its words never makes a difference of one bit.
    return math.fsum(weights[word] for word in words)


def _fold(text: str) -> str:
    """Make case, Unicode form and accents not matter."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    taken_apart = unicodedata.normalize("NFD", folded)
    return unicodedata.normalize("NFC", "".join(c for c in taken_apart if unicodedata.combining(c) in _LETTER_MAKING))


def _words(text: str, *, singles: bool) -> Iterable[str]:
    for run, unspaced in _runs(_fold(text)):
        if not unspaced:
            yield run
            continue
        if singles or len(run) == 1:
            yield from run
        yield from (run[place : place + 2] for place in range(len(run) - 1))


def _runs(text: str) -> Iterable[tuple[str, bool]]:
    """Split into runs of letters, digits and their marks, each of one kind of script."""
    run, run_is_unspaced = "", False
    for character in text:
        is_word = unicodedata.category(character)[0] in "LNM"
        unspaced = is_word and _is_unspaced(character)
        if run and not (is_word and unspaced == run_is_unspaced):
            yield run, run_is_unspaced
            run = ""
        if is_word:
            run += character
            run_is_unspaced = unspaced
    if run:
        yield run, run_is_unspaced


def _is_unspaced(character: str) -> bool:
    code = ord(character)
    return code >= _UNSPACED[0][0] and any(first <= code <= last for first, last in _UNSPACED)
