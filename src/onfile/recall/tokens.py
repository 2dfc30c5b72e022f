"""From text to the terms that it is found by, alike for facts and for questions, in any script."""

from __future__ import annotations

import re
import unicodedata

from .stems import stem
from .stopwords import STOP_WORDS

# Scripts that put no spaces between words: Han, kana, Hangul is spaced and stays out; Thai, Lao,
# Khmer, Burmese. A run of them becomes its characters and its pairs of characters.
_UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4f\u0e81-\u0edf\u1000-\u109f\u1780-\u17d3"
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
)
_RUNS = re.compile(rf"([{_UNSPACED}]+)")
_WORDS = re.compile(r"[^\W_]+")
# Every character that is in no ASCII word becomes a space: quicker than looking for the words.
_ASCII_SPACED = "".join(chr(code).lower() if chr(code).isalnum() else " " for code in range(128))
_MARKS = re.compile("[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u064b-\u065f\u0670]+")
_LONGEST_TERM = 64
_MOST_TERMS = 65_536


def fold(text: str) -> str:
    """Answer the text without capitals, accents and compatibility forms: `Zürich` and `ＺＵＲＩＣＨ` are one.

    Marks that only colour a letter are dropped (Latin, Greek, Cyrillic, Hebrew, Arabic); the vowel
    signs of Thai and the scripts of India are letters in all but name and stay.
    """
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text).casefold())
    return unicodedata.normalize("NFC", _MARKS.sub("", apart))


def tokenise(text: str) -> list[str]:
    """Answer the terms of a text in order, repeated as often as they occur; `[]` when it has no word.

    Punctuation, quotes, operators and emoji are no words. Stop words are dropped.
    """
    folded = fold(text)
    if folded.isascii():
        # The first search of a scope does this to every fact in it: one look-up a word.
        return [term for term in map(_TERMS.__getitem__, folded.translate(_ASCII_SPACED).split()) if term]
    terms: list[str] = []
    for word in _words_with_marks(folded):
        for place, part in enumerate(_RUNS.split(word)):
            if place % 2:
                terms += _pairs(part)
            elif part and part not in STOP_WORDS:
                terms.append(stem(part)[:_LONGEST_TERM])
    return terms


class _Terms(dict[str, str]):
    """The term of each ASCII word met, `""` for a stop word; forgets all when it has grown too big."""

    def __missing__(self, word: str) -> str:
        if len(self) >= _MOST_TERMS:
            self.clear()
        term = self[word] = "" if word in STOP_WORDS else stem(word)
        return term


_TERMS = _Terms()


def has_words(text: str) -> bool:
    """Tell whether the text has any letter or digit at all, stop words included."""
    return _WORDS.search(text) is not None


def _words_with_marks(folded: str) -> list[str]:
    # `\w` leaves out combining marks, which would cut Hindi and Thai words in the middle.
    if not any(unicodedata.category(character)[0] == "M" for character in folded):
        return _WORDS.findall(folded)
    kept = (c if c.isalnum() or unicodedata.category(c)[0] == "M" else " " for c in folded)
    return "".join(kept).split()


def _pairs(run: str) -> list[str]:
    """Answer the characters of a run and each two neighbours: its words are among the pairs."""
    return [*run, *(run[i : i + 2] for i in range(len(run) - 1))]
