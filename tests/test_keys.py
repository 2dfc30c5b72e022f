"""The identity of a key: which spellings ask one question, and which do not."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from onfile import fold_key
from onfile.keys import DASHES
from tests.strategies import any_text

WHITE_SPACE = [character for character in map(chr, range(sys.maxunicode + 1)) if character.isspace()]


@pytest.mark.parametrize("spelling", ["Fiscal Year", "fiscal_year", "fiscal-year", "FISCAL  YEAR", " fiscal\tyear "])
def test_spellings_of_one_question_share_an_identity(spelling: str):
    assert fold_key(spelling) == "fiscal-year"


@pytest.mark.parametrize(
    ("one", "other"),
    [("C", "C++"), ("1.0", "10"), ("請求先", "会計年度"), ("a.b", "ab"), ("fiscal", "fiscal-year"), ("C#", "C")],
)
def test_two_questions_keep_two_identities(one: str, other: str):
    assert fold_key(one) != fold_key(other)


def test_a_composed_and_a_decomposed_letter_are_one():
    assert fold_key("cafe\u0301") == fold_key("caf\u00e9") == "caf\u00e9"


def test_case_is_folded_and_not_only_lowered():
    assert fold_key("STRASSE") == fold_key("straße")
    assert fold_key("ΟΔΟΣ") == fold_key("οδος")


@pytest.mark.parametrize("dash", DASHES, ids=lambda dash: f"U+{ord(dash):04X}")
def test_every_dash_is_a_separator(dash: str):
    assert fold_key(f"fiscal{dash}year") == "fiscal-year"


def test_the_dashes_are_those_that_unicode_calls_dashes():
    # The list may be of a newer Unicode than the running Python; then those are unassigned here.
    known = {character for character in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(character) == "Pd"}

    assert known <= set(DASHES)
    assert {unicodedata.category(character) for character in set(DASHES) - known} <= {"Cn"}
    assert len(set(DASHES)) == len(DASHES)


def test_every_white_space_of_unicode_is_a_separator():
    assert {fold_key(f"fiscal{space}year") for space in WHITE_SPACE} == {"fiscal-year"}


def test_a_run_of_mixed_separators_is_one_separator():
    assert fold_key("fiscal -_\u2014\u00a0 year") == "fiscal-year"


def test_separators_at_the_ends_are_dropped():
    assert fold_key("_- fiscal year —") == "fiscal-year"


@pytest.mark.parametrize("key", ["", " ", "-", "_", " - _ — \u3000"])
def test_a_key_of_separators_only_has_an_empty_identity(key: str):
    assert fold_key(key) == ""


@given(any_text)
@example("\u0345\u0301A")
@example("\u1e9e \u0130")
def test_folding_twice_changes_nothing(key: str):
    assert fold_key(fold_key(key)) == fold_key(key)


@given(any_text, st.sampled_from(["NFC", "NFD"]))
def test_the_unicode_form_never_decides_an_identity(key: str, form):
    assert fold_key(unicodedata.normalize(form, key)) == fold_key(key)


@given(any_text)
def test_an_identity_holds_no_separator_but_single_hyphens_between_other_characters(key: str):
    identity = fold_key(key)

    assert not any(character.isspace() or character == "_" for character in identity)
    assert not any(unicodedata.category(character) == "Pd" for character in identity if character != "-")
    assert "--" not in identity
    assert identity == identity.strip("-")


@given(st.lists(st.text("abcxyz", min_size=1), min_size=1, max_size=4), st.data())
def test_only_the_words_decide_and_never_what_stands_between_them(words: list[str], data):
    separators = st.text(st.sampled_from([*DASHES, *WHITE_SPACE, "_"]), min_size=1, max_size=3)
    spelling = data.draw(separators).join([data.draw(separators), *words, data.draw(separators)])

    assert fold_key(spelling) == "-".join(words)


@given(st.text(alphabet=st.characters(max_codepoint=127)))
@example("\x1c-a_\x1f b\v")
def test_plain_letters_fold_as_they_do_beside_a_letter_of_another_script(key: str):
    beside = fold_key(f"é {key}").removeprefix("é").removeprefix("-")

    assert fold_key(key) == beside
