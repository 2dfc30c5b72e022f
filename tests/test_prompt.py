"""The system prompt's five parts."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from onfile.prompt import SystemPrompt, render_source
from onfile.records import Actor
from onfile.scopes import ScopeContext

CTX = ScopeContext(actor=Actor(id="ana", tenant_ref="acme"))
FULL = SystemPrompt(base="BASE", contributed=("ONE", "TWO"), memory="MEMORY", retrieval="PASSAGES", skills="SKILLS")


def test_the_five_parts_stand_in_their_fixed_order_with_one_blank_line_between():
    assert FULL.text == "BASE\n\nONE\n\nTWO\n\nMEMORY\n\nPASSAGES\n\nSKILLS"


def test_a_part_that_is_empty_leaves_no_blank_line_behind():
    assert replace(FULL, contributed=("",), retrieval="").text == "BASE\n\nMEMORY\n\nSKILLS"


def test_the_hash_covers_the_first_two_parts_only():
    other_person = replace(FULL, memory="other", retrieval="", skills="other")

    assert other_person.hash == FULL.hash == hashlib.sha256(b"BASE\n\nONE\n\nTWO").hexdigest()
    assert replace(FULL, base="CHANGED").hash != FULL.hash
    assert replace(FULL, contributed=("ONE",)).hash != FULL.hash


async def test_a_part_may_be_a_function_of_the_context_sync_or_async():
    async def later(ctx: ScopeContext) -> str:
        return f"For {ctx.actor.tenant_ref}.\n"

    assert await render_source("\nBASE\n", CTX) == "BASE"
    assert await render_source(lambda ctx: f"For {ctx.actor.id}.", CTX) == "For ana."
    assert await render_source(later, CTX) == "For acme."


async def test_a_part_that_is_none_or_blank_is_left_out():
    assert await render_source(lambda ctx: None, CTX) == ""
    assert await render_source(" \n ", CTX) == ""


async def test_a_part_that_is_not_text_says_what_to_answer():
    with pytest.raises(TypeError, match="answer a string, or None"):
        await render_source(lambda ctx: 7, CTX)  # pyright: ignore[reportArgumentType]  # the point of the test
