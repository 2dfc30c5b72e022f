"""What a user dictates to the demo's script: from a sentence to a key and a fact."""

from __future__ import annotations

import re

from ..recall.tokens import tokenise

_DICTATED = re.compile(
    r"(?:please )?(?:remember|note|write down|keep in mind)\b(?: that\b)?[\s,:]*(?P<fact>.+)", re.IGNORECASE | re.DOTALL
)
_NAME = re.compile(r"(?:please )?(?:call me|my name is|my name's) (?P<name>.+)", re.IGNORECASE | re.DOTALL)
_OWN = re.compile(r"(?:my|our|the) (?P<key>[^,;?]{1,60}?) (?:is|are|was|were) (?P<fact>.+)", re.IGNORECASE | re.DOTALL)
_KEYED = re.compile(r"(?P<key>[^\s:][^:?]{0,59}?): (?P<fact>.+)", re.DOTALL)
_UNITS = re.compile(
    r"\b(?:kilomet(?:re|er)s?|km|miles?|kilo(?:gram)?s?|kg|pounds?|tonnes?|celsius|fahrenheit)\b", re.IGNORECASE
)
_LANGUAGE = re.compile(r"\b(?:english|german|deutsch|french|spanish|italian|japanese|dutch|polish)\b", re.IGNORECASE)
_KEY_WORDS = 3
_LONGEST_KEY = 40

# A note is about them: it is read in turns where "I" would be the assistant.
_PERSONS = (
    (re.compile(r"\bI am\b|\bI'm\b", re.IGNORECASE), "they are"),
    (re.compile(r"\bI have\b|\bI've\b", re.IGNORECASE), "they have"),
    (re.compile(r"\bmyself\b", re.IGNORECASE), "themselves"),
    (re.compile(r"\bI\b"), "they"),
    (re.compile(r"\bmy\b", re.IGNORECASE), "their"),
    (re.compile(r"\bmine\b", re.IGNORECASE), "theirs"),
    (re.compile(r"\bme\b", re.IGNORECASE), "them"),
)


def dictated(message: str) -> dict[str, str] | None:
    """Answer the arguments of `remember` for a message that dictates a fact, or None for any other."""
    said = " ".join(message.split()).rstrip(".!")
    if said.endswith("?"):
        return None
    asked = _DICTATED.fullmatch(said)
    told = asked["fact"] if asked else said
    if name := _NAME.fullmatch(told):
        return {"key": "name", "fact": name["name"]}
    if own := _OWN.fullmatch(told):
        if asked or told.casefold().startswith("my "):
            return {"key": own["key"], "fact": about_them(own["fact"])}
    elif asked and (keyed := _KEYED.fullmatch(told)):
        return {"key": keyed["key"], "fact": about_them(keyed["fact"])}
    return {"key": _key(told), "fact": about_them(told)} if asked else None


def about_them(text: str) -> str:
    """Put what somebody says of themselves so that it reads as a note about them."""
    for pattern, word in _PERSONS:
        text = pattern.sub(word, text)
    return text


def _key(told: str) -> str:
    """Answer a key for a sentence that names none."""
    for pattern, key in ((_UNITS, "units"), (_LANGUAGE, "language")):
        if pattern.search(told):
            return key
    words = [word for word in re.findall(r"[^\W_]+", told) if tokenise(word)]
    return " ".join(words[:_KEY_WORDS]).lower()[:_LONGEST_KEY].strip() or "note"
