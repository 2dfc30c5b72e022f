"""The identity of a key: which two spellings ask one question."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

# Unicode's category Pd, written out: building the class from `unicodedata` would walk a million
# code points at import. `tests/test_keys.py` holds it against the table of the running Python.
DASHES = (
    "\u002d\u058a\u05be\u1400\u1806\u2010\u2011\u2012\u2013\u2014\u2015\u2e17\u2e1a\u2e3a\u2e3b"
    "\u2e40\u2e5d\u301c\u3030\u30a0\ufe31\ufe32\ufe58\ufe63\uff0d\U00010d6e\U00010ead"
)
_SEPARATORS = re.compile(rf"[\s_{re.escape(DASHES)}]+")


# Every turn folds the keys of every fact it may see, and they are the same ones turn after turn.
@lru_cache(maxsize=8_192)
def fold_key(key: str) -> str:
    """Answer the identity that every spelling of a key shares: `Fiscal Year` gives `fiscal-year`.

    Unicode NFC and casefolded; each run of white space, dashes (category Pd) and `_` is one `-`;
    none at the ends. Nothing else is dropped, so `C` and `C++` stay two questions. A key of
    separators only gives `""`. Folding twice changes nothing.
    """
    if key.isascii():
        # What the expression below does, several times as fast: a turn may fold thousands.
        return "-".join(key.lower().replace("_", " ").replace("-", " ").split())
    # Composed before folding, so that a combining iota folds in place, and again after it,
    # because casefolding takes some letters apart.
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", key).casefold())
    return _SEPARATORS.sub("-", folded).strip("-")
