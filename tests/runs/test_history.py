"""Which earlier turns a model reads again."""

from __future__ import annotations

from onfile.memory import Memory
from onfile.runs.assistant import Assistant
from onfile.runs.history import History
from onfile.runs.inline import InlineJournal
from onfile.runs.runner import TurnRunner
from onfile.runs.tools import action_tool, read_tool
from onfile.testing import InMemoryMemoryProvider
from tests.runs.script import CTX, Script, call, remember, value


@read_tool
def weather(city: str) -> str:
    """Look up the weather."""
    return f"rain in {city}"


@action_tool
def ship(order: str) -> str:
    """Ship an order."""
    return f"shipped {order}"


async def conversation(engine: InlineJournal, *turns, history: History | None = None, **parts) -> Script:
    script = Script([])
    for place, steps in enumerate(turns, 1):
        script = Script(steps)
        assistant = Assistant(model=script.model(), tools=[weather, ship], history=history or History(), **parts)
        await TurnRunner(assistant, engine).start(f"question {place}", ctx=CTX, run_id=f"r{place}")
    return script


def said(script: Script) -> list[str]:
    return [
        f"{part.part_kind}: {getattr(part, 'content', None) or part.args}"
        for one in script.requests[0]
        for part in one.parts
    ]


async def test_a_turn_reads_the_threads_earlier_turns_with_calls_and_results():
    script = await conversation(InlineJournal(), [[call("weather", city="Bonn")], "Rain."], ["You are welcome."])

    assert said(script) == [
        "user-prompt: question 1",
        "tool-call: {'city': 'Bonn'}",
        "tool-return: rain in Bonn",
        "text: Rain.",
        "user-prompt: question 2",
    ]


async def test_a_ceiling_drops_whole_turns_the_oldest_first_and_counts_them():
    engine = InlineJournal()

    script = await conversation(
        engine, ["One."], [[call("weather", city="Bonn")], "Two."], ["Three."], history=History(max_messages=5)
    )

    assert said(script)[0] == "user-prompt: question 2"
    assert (await value(engine, "load:thread", "r3"))["dropped"] == 2


async def test_a_ceiling_of_tokens_counts_by_the_hosts_own_counter():
    script = await conversation(
        InlineJournal(), ["One."], ["Two."], ["Three."],
        history=History(max_tokens=2, count_tokens=lambda text: 1),
    )  # fmt: skip  # the turns side by side

    assert said(script) == ["user-prompt: question 2", "text: Two.", "user-prompt: question 3"]


async def test_dropped_turns_lead_the_history_as_a_summary_that_is_given_no_recorded_fact():
    given: list[str] = []

    async def summarise(text: str) -> str:
        given.append(text)
        return "they asked one thing"

    provider = InMemoryMemoryProvider()
    script = await conversation(
        InlineJournal(),
        [[remember(fact="kilometres")], "Noted."],
        ["Two."],
        history=History(max_messages=1, summarise=summarise),
        memory=Memory(provider),
    )

    assert said(script) == [
        "user-prompt: Earlier in this conversation, in short: they asked one thing",
        "user-prompt: question 2",
    ]
    assert given == ["User: question 1\nAssistant: Noted."]
    # Dropping a message touches no fact.
    assert [entry.text for entry in await Memory(provider).read_back(CTX)] == ["kilometres"]


async def test_a_turn_whose_call_nobody_answered_yet_is_left_out():
    script = await conversation(InlineJournal(), [[call("ship", order="o1")], "Done."], ["Hello."])

    assert said(script) == ["user-prompt: question 2"]
