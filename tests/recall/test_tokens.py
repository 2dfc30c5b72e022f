"""What a text is found by."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onfile.recall.tokens import fold, has_words, tokenise


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Where did she go?", "she went"),
        ("planning", "planned plans"),
        ("the children's books", "a book for a child"),
        ("Zürich", "ZURICH"),
        ("Ｆｉｓｃａｌ", "fiscal"),
        (unicodedata.normalize("NFD", "café"), "CAFÉ"),
        ("ПАЛЛЕТА", "паллета"),
    ],
)
def test_two_ways_to_say_a_thing_share_a_term(one, other):
    assert set(tokenise(one)) & set(tokenise(other))


@pytest.mark.parametrize(
    ("fact", "question"),
    [("用户喜欢喝绿茶", "你喜欢什么茶？"), ("カレンダーは月曜始まり", "月曜から？"), ("ฉันชอบกินข้าวผัด", "ข้าวผัด")],
)
def test_a_script_without_spaces_is_found_by_a_part_of_a_sentence(fact, question):
    assert set(tokenise(fact)) & set(tokenise(question))


def test_a_hindi_word_keeps_its_vowel_signs():
    assert tokenise("हिन्दी") == ["हिन्दी"]


@pytest.mark.parametrize("text", ["", "?!", "\"'()*&|:-", "🎉👩‍👩‍👧", "…", "\u0301", "___"])
def test_punctuation_operators_and_emoji_are_no_words(text):
    assert tokenise(text) == []
    assert not has_words(text)


@pytest.mark.parametrize("text", ["yes, do that", "wer sind wir", "qui est-ce", "¿y por qué?"])
def test_a_turn_of_stop_words_has_no_term(text):
    assert tokenise(text) == []


def test_short_words_keep_their_endings():
    assert tokenise("gas bus C3PO v2") == ["gas", "bus", "c3po", "v2"]


@given(st.text())
def test_any_text_has_terms_without_an_error_and_alike_in_every_form_and_case(text):
    terms = tokenise(text)

    assert all(terms)
    assert tokenise(unicodedata.normalize("NFD", text)) == tokenise(unicodedata.normalize("NFC", text))
    assert fold(fold(text)) == fold(text)
