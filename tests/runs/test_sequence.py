"""The sequence table: for every kind of turn the names of its checkpoints, written out, wherever they are kept."""

from __future__ import annotations

import json

import pytest

from onfile.memory import Memory
from onfile.runs.assistant import Assistant
from onfile.runs.journal import JournalEngine
from onfile.runs.retrieval import Passage, Retrieval, Retrieve
from onfile.runs.runner import TurnRunner
from onfile.runs.tools import action_tool, read_tool
from onfile.skills import CodeSkills, skill
from tests.runs.conftest import Place
from tests.runs.script import CTX, Script, call, names, remember, value


@read_tool
def weather(city: str) -> str:
    """Look up the weather."""
    return f"rain in {city}"


@action_tool
def ship(order: str) -> str:
    """Ship an order."""
    return f"shipped {order}"


@skill(scope="global")
def label_a_pallet() -> str:
    """How pallets are labelled."""
    return "Print two labels."


class Shelf:
    async def retrieve(self, request: Retrieve) -> list[Passage]:
        return [Passage(text=f"about {request.query}", source="handbook")]


def down(place: Place):
    """A provider at the place, which cannot be written to and does not say so."""

    class Down(type(place.provider)):
        async def write(self, request):
            raise ConnectionError(request.scope)

        def within(self, transaction):
            return self

    return Down(place.engine) if place.engine is not None else Down()


class Outcome:
    def __init__(self, engine: JournalEngine, runner: TurnRunner, script: Script) -> None:
        self.engine, self.runner, self.script = engine, runner, script


@pytest.fixture
def turn(place: Place):
    """Start a turn at the place, wherever that keeps its journal."""

    async def start(*steps, **parts) -> Outcome:
        script = Script(steps)
        runner = TurnRunner(Assistant(model=script.model(), base_prompt="BASE", **parts), place.journal)
        await runner.start("How do we label a pallet?", ctx=CTX, run_id="r1")
        return Outcome(place.journal, runner, script)

    return start


PLAIN = [
    "persist:user",
    "load:thread",
    "run:prompt-stages",
    "persist:run:start",
    "llm:0",
    "persist:assistant:0",
    "persist:run:end",
]


async def test_a_plain_turn(turn):
    done = await turn("Two labels.")

    assert await names(done.engine) == PLAIN


async def test_a_turn_without_memory_is_the_same_as_one_that_never_had_the_option(turn):
    without = await turn("Two labels.", memory=None, retrieval=None, skills=(), tools=(), asks=False)

    assert await names(without.engine) == PLAIN
    assert await value(without.engine, "run:prompt-stages") == {"stages": []}


async def test_a_turn_with_memory(turn, place):
    done = await turn("Two labels.", memory=Memory(place.provider))

    assert await names(done.engine) == [
        "persist:user",
        "load:thread",
        "run:prompt-stages",
        "persist:run:start",
        "memory:digest",
        "llm:0",
        "persist:assistant:0",
        "persist:run:end",
    ]
    assert await value(done.engine, "run:prompt-stages") == {"stages": ["memory"]}


async def test_a_turn_with_retrieval(turn):
    done = await turn("Two labels.", retrieval=Retrieval(retriever=Shelf()))

    assert await names(done.engine) == [
        "persist:user",
        "load:thread",
        "run:prompt-stages",
        "persist:run:start",
        "retrieve",
        "llm:0",
        "persist:assistant:0",
        "persist:run:end",
    ]


async def test_a_turn_that_reads_a_skill(turn):
    done = await turn([call("skill", name="label a pallet")], "Two labels.", skills=[CodeSkills(label_a_pallet)])

    assert await names(done.engine) == [
        "persist:user",
        "load:thread",
        "run:prompt-stages",
        "persist:run:start",
        "skills:catalog",
        "llm:0",
        "persist:assistant:0",
        "persist:toolcall:c1",
        "tool:c1",
        "persist:toolexec:c1",
        "llm:1",
        "persist:assistant:1",
        "persist:run:end",
    ]
    assert (await value(done.engine, "persist:toolcall:c1"))["kind"] == "skill"
    assert (await value(done.engine, "tool:c1"))["message"] == "Print two labels."


async def test_a_turn_with_everything_on(turn, place):
    done = await turn(
        "Two labels.",
        memory=Memory(place.provider),
        retrieval=Retrieval(retriever=Shelf()),
        skills=[CodeSkills(label_a_pallet)],
        tools=[weather, ship],
        asks=True,
        contributors=["ONE"],
    )

    assert await names(done.engine) == [
        "persist:user",
        "load:thread",
        "run:prompt-stages",
        "persist:run:start",
        "memory:digest",
        "retrieve",
        "skills:catalog",
        "llm:0",
        "persist:assistant:0",
        "persist:run:end",
    ]
    assert await value(done.engine, "run:prompt-stages") == {"stages": ["memory", "retrieval", "skills"]}


READ = [
    "persist:user",
    "load:thread",
    "run:prompt-stages",
    "persist:run:start",
    "llm:0",
    "persist:assistant:0",
    "persist:toolcall:c1",
    "tool:c1",
    "persist:toolexec:c1",
    "llm:1",
    "persist:assistant:1",
    "persist:run:end",
]


async def test_a_turn_with_a_read(turn):
    done = await turn([call("weather", city="Bonn")], "Rain.", tools=[weather])

    assert await names(done.engine) == READ
    assert (await value(done.engine, "persist:toolcall:c1"))["kind"] == "read"


async def test_a_turn_with_two_reads_in_one_step(turn):
    done = await turn([call("weather", city="Bonn"), call("weather", "c2", city="Kiel")], "Rain.", tools=[weather])

    assert await names(done.engine) == [
        "persist:user",
        "load:thread",
        "run:prompt-stages",
        "persist:run:start",
        "llm:0",
        "persist:assistant:0",
        "persist:toolcall:c1",
        "tool:c1",
        "persist:toolexec:c1",
        "persist:toolcall:c2",
        "tool:c2",
        "persist:toolexec:c2",
        "llm:1",
        "persist:assistant:1",
        "persist:run:end",
    ]


async def test_a_turn_with_a_read_that_raises(turn):
    @read_tool
    def broken() -> str:
        """Never works."""
        int("no such station")

    done = await turn([call("broken")], "It is broken.", tools=[broken])

    assert await names(done.engine) == [
        "persist:user",
        "load:thread",
        "run:prompt-stages",
        "persist:run:start",
        "llm:0",
        "persist:assistant:0",
        "persist:toolcall:c1",
        "tool:c1",
        "persist:toolfail:c1",
        "llm:1",
        "persist:assistant:1",
        "persist:run:end",
    ]
    assert await value(done.engine, "tool:c1") == {
        "ok": False,
        "message": "invalid literal for int() with base 10: 'no such station'",
    }


@pytest.mark.parametrize("approved", [True, False])
async def test_a_turn_with_an_action_waits_for_a_persons_approval(turn, approved: bool):
    parked = await turn([call("ship", order="o1")], "Done.", tools=[ship])

    assert await names(parked.engine) == [
        "persist:user",
        "load:thread",
        "run:prompt-stages",
        "persist:run:start",
        "llm:0",
        "persist:assistant:0",
        "persist:toolcall:c1",
    ]
    pending = await parked.runner.pending("r1")
    assert pending is not None
    assert (pending.kind, pending.tool, pending.arguments) == ("approval", "ship", {"order": "o1"})

    assert await parked.runner.decide("r1", "c1", approved=approved, reason="not today")
    result = await parked.runner.resume("r1")

    assert (result.status, result.text) == ("done", "Done.")
    executed = ["tool:c1", "persist:toolexec:c1"] if approved else ["persist:toolreject:c1"]
    assert await names(parked.engine) == [
        "persist:user",
        "load:thread",
        "run:prompt-stages",
        "persist:run:start",
        "llm:0",
        "persist:assistant:0",
        "persist:toolcall:c1",
        "approval:c1",
        *executed,
        "llm:1",
        "persist:assistant:1",
        "persist:run:end",
    ]
    told = parked.script.requests[-1][-1].parts[0]
    assert (told.content, told.outcome) == (
        ("shipped o1", "success")
        if approved
        else ("The person declined this call; nothing was done. They said: not today", "denied")
    )


ASKED = [
    "persist:user",
    "load:thread",
    "run:prompt-stages",
    "persist:run:start",
    "llm:0",
    "persist:assistant:0",
    "persist:toolcall:c1",
    "answer:c1",
    "tool:c1",
    "persist:toolexec:c1",
    "llm:1",
    "persist:assistant:1",
    "persist:run:end",
]
QUESTIONS = [{"question": "Which depot?", "default": "north"}, {"question": "How many?", "default": "2"}]


SKIPPED = "the default: the user skipped it"


@pytest.mark.parametrize(
    ("answers", "settled"),
    [(["south", None], [("south", "the user"), ("2", SKIPPED)]), (None, [("north", SKIPPED), ("2", SKIPPED)])],
    ids=["answered", "skipped"],
)
async def test_a_turn_that_asks_the_user(turn, answers, settled):
    parked = await turn([call("ask", questions=QUESTIONS)], "Thanks.", asks=True)
    pending = await parked.runner.pending("r1")
    assert pending is not None and pending.kind == "answer"

    assert await parked.runner.answer("r1", "c1", answers)
    result = await parked.runner.resume("r1")

    assert result.text == "Thanks."
    assert await names(parked.engine) == ASKED
    told = json.loads((await value(parked.engine, "tool:c1"))["message"])
    assert [(one["answer"], one["from"]) for one in told] == settled


REMEMBERED = [
    "persist:user",
    "load:thread",
    "run:prompt-stages",
    "persist:run:start",
    "memory:digest",
    "llm:0",
    "persist:assistant:0",
    "persist:toolcall:c1",
    "tool:c1",
    "persist:toolexec:c1",
    "llm:1",
    "persist:assistant:1",
    "persist:run:end",
]


async def test_a_turn_that_remembers(turn, place):
    done = await turn([remember()], "Noted.", memory=Memory(place.provider))

    assert await names(done.engine) == REMEMBERED
    assert (await value(done.engine, "persist:toolcall:c1"))["kind"] == "memory"
    [entry] = await Memory(place.provider).read_back(CTX)
    assert (entry.text, entry.origin.run_id, entry.origin.author) == ("kilometres", "r1", "agent")


async def test_a_turn_whose_remember_is_refused_carried_the_call_out(turn, place):
    done = await turn([remember(scope="global")], "I cannot.", memory=Memory(place.provider))

    assert await names(done.engine) == REMEMBERED
    assert "has no `scope`" in (await value(done.engine, "tool:c1"))["message"]


async def test_a_turn_whose_provider_fails_tells_the_model_and_keeps_nothing(turn, place):
    done = await turn([remember()], "I could not.", memory=Memory(down(place)))

    assert await names(done.engine) == [
        "persist:user",
        "load:thread",
        "run:prompt-stages",
        "persist:run:start",
        "memory:digest",
        "llm:0",
        "persist:assistant:0",
        "persist:toolcall:c1",
        "tool:c1",
        "persist:toolfail:c1",
        "llm:1",
        "persist:assistant:1",
        "persist:run:end",
    ]
    assert "actor:ana" not in (await value(done.engine, "tool:c1"))["message"]
