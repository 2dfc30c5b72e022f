"""How much words weigh beside vectors."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from onfile.recall.fusion import CONTEXTUAL, STATIC, UNREAD, lexical_weight


def embedder(model, **more):
    return SimpleNamespace(model=model, dimensions=3, **more)


@pytest.mark.parametrize(
    ("model", "query", "weight"),
    [
        ("sentence-transformers/all-MiniLM-L6-v2", "which tea?", CONTEXTUAL),
        ("sentence-transformers/all-MiniLM-L6-v2", "你喜欢什么茶？", UNREAD),
        ("openai:text-embedding-3-small", "你喜欢什么茶？", CONTEXTUAL),
        ("intfloat/multilingual-e5-small", "ฉันชอบชา", CONTEXTUAL),
        ("minishlab/potion-base-8M", "which tea?", STATIC),
        ("minishlab/potion-multilingual-128M", "какой чай?", STATIC),
        ("minishlab/potion-base-8M", "какой чай?", UNREAD),
    ],
)
def test_words_weigh_by_the_model_and_carry_a_script_that_it_does_not_know(model, query, weight):
    assert lexical_weight(embedder(model), query) == weight


def test_an_embedder_may_say_both_itself():
    assert lexical_weight(embedder("house-model", lexical_weight=0.5), "tea") == 0.5
    assert lexical_weight(embedder("house-model", scripts={"LATIN"}), "чай") == UNREAD
