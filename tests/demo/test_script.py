"""The demo's script is no model: it says what its prompt and the conversation hold, and does what its tools do."""

from __future__ import annotations

import pytest
from pydantic_ai.direct import model_request
from pydantic_ai.messages import InstructionPart, ModelRequest, ModelResponse, TextPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from onfile.block import build_memory_block
from onfile.demo.assistant import demo_assistant
from onfile.demo.dictation import dictated
from onfile.demo.reading import read_facts
from onfile.demo.script import scripted_model
from onfile.digest import resolve_memory_digest
from onfile.memory import Memory
from onfile.records import Actor
from onfile.runs.assistant import Assistant
from onfile.runs.inline import InlineJournal
from onfile.runs.runner import TurnRunner
from onfile.scopes import ScopeContext
from onfile.skills import CodeSkills, skill
from onfile.testing import InMemoryMemoryProvider
from tests.facts import fact

TOOLS = ("remember", "book", "ask", "skill")
ANA = ScopeContext(actor=Actor(id="ana"), thread_id="t1")


def block(*records) -> str:
    """Some facts as a prompt shows them."""
    digest = resolve_memory_digest(records=records, scopes=["actor:ana", "tenant:acme", "global"], max_memories=20)
    return build_memory_block(entries=digest.entries, writable=True, partial=False)


async def next_step(*said: str, prompt: str = "", tools: tuple[str, ...] = TOOLS, after=()):
    """What the script says or calls next in a conversation."""
    messages = []
    for one in said[:-1]:
        messages += [ModelRequest(parts=[UserPromptPart(one)]), ModelResponse(parts=[TextPart("Well.")])]
    messages += [ModelRequest(parts=[UserPromptPart(said[-1])], instructions=prompt or None), *after]
    parameters = ModelRequestParameters(
        function_tools=[ToolDefinition(name=name) for name in tools],
        instruction_parts=[InstructionPart(content=prompt)] if prompt else None,
    )
    response = await model_request(scripted_model(), messages, model_request_parameters=parameters)
    [part] = response.parts
    return part


def result(tool: str, content: str, outcome: str = "success"):
    """What a call brought back."""
    return ModelRequest(parts=[ToolReturnPart(tool_name=tool, content=content, tool_call_id="c", outcome=outcome)])


@pytest.mark.parametrize(
    ("said", "key", "text"),
    [
        ("remember that my units are kilometres", "units", "kilometres"),
        ("Remember that I think in kilometres.", "units", "they think in kilometres"),
        ("please note: dock doors: 1 to 4 receive", "dock doors", "1 to 4 receive"),
        ("my favourite port is Bremerhaven!", "favourite port", "Bremerhaven"),
        ("remember the ferry is at 15:00", "ferry", "at 15:00"),
        ("Call me Ann", "name", "Ann"),
        ("my name is Ann", "name", "Ann"),
        ("remember that I never ship on Fridays", "never ship fridays", "they never ship on Fridays"),
        ("remember that my boss wants my report by noon", "boss wants report", "their boss wants their report by noon"),
        ("remember das Lager bleibt kalt", "lager bleibt kalt", "das Lager bleibt kalt"),
    ],
)
def test_what_is_dictated_becomes_a_key_and_a_fact_about_them(said, key, text) -> None:
    assert dictated(said) == {"key": key, "fact": text}


@pytest.mark.parametrize(
    "said", ["do you remember my units?", "what are my units?", "the ferry is late", "I think in kilometres", ""]
)
def test_what_is_only_said_or_asked_is_not_noted(said) -> None:
    assert dictated(said) is None


def test_it_reads_every_fact_of_a_block_with_who_said_so_and_what_it_beats() -> None:
    stated = fact("labels", "two [sides]: short", scope="tenant:acme", author="human")
    wide = fact("units", "miles", scope="global", author="human")

    facts = read_facts(f"BASE\n\n{block(fact('units', 'kilometres'), stated, wide)}\n\nmore")

    assert [(one.scope, one.key, one.text, one.own_note, one.beats) for one in facts] == [
        ("tenant:acme", "labels", "two [sides]: short", False, ()),
        ("actor:ana", "units", "kilometres", True, (("global", "miles"),)),
    ]
    assert read_facts("no block") == []


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("Which units do I use?", "Units: kilometres ([actor:ana], my own note; [global] has “miles” instead)."),
        (
            "how do we label a pallet",
            "Labels: two, on the short sides of a pallet ([tenant:acme], a person stated it).",
        ),
    ],
)
async def test_it_answers_a_question_from_the_fact_with_the_same_words(asked, answer) -> None:
    prompt = block(
        fact("units", "kilometres"),
        fact("units", "miles", scope="global"),
        fact("labels", "two, on the short sides of a pallet", scope="tenant:acme", author="human"),
    )

    assert (await next_step(asked, prompt=prompt)).content == answer


async def test_asked_for_everything_it_tells_all_that_it_was_given() -> None:
    prompt = block(fact("units", "kilometres"), fact("labels", "two", scope="tenant:acme", author="human"))

    said = (await next_step("what do you know about me?", prompt=prompt)).content

    assert said.splitlines()[1:] == [
        "- labels: two ([tenant:acme], a person stated it)",
        "- units: kilometres ([actor:ana], my own note)",
    ]
    assert (await next_step("What is on file?")).content == "Nothing is on file about you in this turn."


async def test_what_it_cannot_do_it_says_and_what_it_is() -> None:
    said = (await next_step("how old is the moon?", prompt=block(fact("units", "kilometres")))).content

    assert said.startswith("Nothing on file that I was given has these words")
    assert "I am a script, not a language model." in said
    assert "book" not in (await next_step("hello", tools=("remember",))).content
    assert "not offered `remember`" in (await next_step("call me Ann", tools=())).content


async def test_what_was_said_before_is_read_from_the_conversation() -> None:
    assert (await next_step("hello", "ship it", "what did I say before?")).content.splitlines()[1:] == [
        "- hello",
        "- ship it",
    ]
    assert (await next_step("what did I say?")).content == "Nothing before this."


async def test_it_books_what_it_is_told_to_and_asks_where_that_is_missing() -> None:
    booked = await next_step("Please book 12 pallets to Bremen.")
    asking = await next_step("book")

    assert (booked.tool_name, booked.args) == ("book", {"what": "12 pallets to Bremen"})
    assert asking.tool_name == "ask"
    answered = result("ask", '[{"question": "…", "answer": "3 crates", "from": "the user"}]')
    skipped = result("ask", '[{"question": "…", "answer": "nothing", "from": "the default"}]')
    assert (await next_step("book", after=[answered])).args == {"what": "3 crates"}
    assert (await next_step("book", after=[skipped])).content == "Then nothing is booked."
    assert (await next_step("book", after=[result("ask", "broken")])).content == "Then nothing is booked."


async def test_a_result_is_passed_on_and_a_rejection_is_not_called_done() -> None:
    assert (await next_step("call me Ann", after=[result("remember", "Not recorded. It stands.")])).content == (
        "Not recorded. It stands."
    )
    denied = await next_step("book 1", after=[result("book", "The person declined this call.", "denied")])
    assert denied.content == "Not done. The person declined this call."


async def test_the_same_conversation_is_answered_alike_streamed_or_whole_and_no_two_calls_share_an_id() -> None:
    for on_text in (None, [].append):
        provider, journal = InMemoryMemoryProvider(), InlineJournal()
        turns = TurnRunner(demo_assistant(Memory(provider)), journal)
        texts = ("remember that my units are kilometres", "call me Ann", "which units do I use?")
        said = [(await turns.start(text, ctx=ANA, on_text=on_text)).text for text in texts]
        assert said[0] == "Recorded [actor:ana] units: kilometres. It replaced nothing."
        assert said[2] == "Units: kilometres ([actor:ana], my own note)."
        calls = [
            part["tool_call_id"]
            for entry in await journal.read_thread("t1")
            if entry.kind == "assistant"
            for part in entry.content["message"]["parts"]
            if part["part_kind"] == "tool-call"
        ]
        assert calls == ["call_1", "call_2"]


async def test_a_procedure_on_offer_is_read_when_its_name_is_said() -> None:
    @skill(name="dangerous-goods", description="How lithium batteries are booked.")
    def dangerous_goods() -> str:
        return "Stop and ask Compliance."

    turns = TurnRunner(Assistant(model=scripted_model(), skills=[CodeSkills(dangerous_goods)]), InlineJournal())

    result = await turns.start("what about dangerous goods?", ctx=ANA)

    assert result.text == "The procedure on offer says:\nStop and ask Compliance."


async def test_booking_again_after_a_crash_is_the_same_booking() -> None:
    from onfile.demo.assistant import book
    from onfile.runs.tools import ToolContext

    context = ToolContext(ctx=ANA, run_id="r1", tool_call_id="c1")
    first, again = [await book.call({"what": "12 pallets"}, context) for _ in range(2)]

    assert first == again
    assert "in play" in first
