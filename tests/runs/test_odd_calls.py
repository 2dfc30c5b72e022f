"""What models really send: two calls of one id, numbers that JSON does not know, keys with control characters."""

from __future__ import annotations

import json

import pytest
from pydantic_ai.messages import ToolCallPart

from onfile.memory import Memory
from onfile.runs.assistant import Assistant
from onfile.runs.runner import TurnRunner
from onfile.runs.tools import action_tool, read_tool
from tests.runs.conftest import Place
from tests.runs.script import CTX, Script, call, names, remember, value


@read_tool
def profile(facts: dict[str, object]) -> str:
    """Look a profile up."""
    return f"{len(facts)} facts"


@action_tool
def publish(version: int, scopes: list[str], entries: list[int], block: str) -> str:
    """Publish a page."""
    return f"{version} {scopes} {entries} {block}"


@read_tool
def double(number: float) -> float:
    """Double a number."""
    return 2 * number


async def kept_of(place: Place) -> str:
    """All that the run and its thread keep."""
    journal = [one.value for one in await place.journal.checkpoints("r1")]
    return json.dumps([journal, [entry.content for entry in await place.journal.read_thread("t1")]])


async def test_a_tool_may_take_whatever_parameters_the_journal_has_names_of_its_own_for(place: Place):
    step = [
        call("profile", facts={"colour": "b" * 100, "numbers": [1]}),
        call("publish", "c2", version=1, scopes=[], entries=[1], block="x"),
    ]
    script = Script([step, "Done."])
    assistant = Assistant(model=script.model(), tools=[profile, publish], memory=Memory(place.provider))
    turns = TurnRunner(assistant, place.journal)

    await turns.start("hello", ctx=CTX, run_id="r1")
    await turns.decide("r1", "c2", approved=True)
    result = await turns.resume("r1")

    assert result.status == "done"
    assert (await value(place.journal, "tool:c1"))["message"] == "2 facts"
    assert (await value(place.journal, "tool:c2"))["message"] == "1 [] [1] x"


@pytest.mark.parametrize("arguments", ['{"number": NaN}', '{"number": 1e999}', '{"number": '])
async def test_arguments_that_are_no_json_are_told_to_the_model_and_stop_no_run(place: Place, arguments: str):
    script = Script([[ToolCallPart("double", arguments, tool_call_id="c1")], "Sorry."])
    turns = TurnRunner(Assistant(model=script.model(), tools=[double]), place.journal)

    result = await turns.start("hello", ctx=CTX, run_id="r1")

    assert result.text == "Sorry."
    assert (await value(place.journal, "persist:toolcall:c1"))["args"] == arguments
    assert "persist:toolfail:c1" in await names(place.journal)


async def test_two_calls_of_one_id_in_one_step_are_told_apart_and_each_is_erased_with_its_own_fact(sqlite: Place):
    memory = Memory(sqlite.provider)
    step = [remember(key="alpha", fact="the first answer"), remember(key="beta", fact="the second answer")]
    turns = TurnRunner(Assistant(model=Script([step, "Noted."]).model(), memory=memory), sqlite.journal)

    await turns.start("hello", ctx=CTX, run_id="r1")
    alpha = next(entry for entry in await memory.read_back(CTX) if entry.key == "alpha")
    await memory.forget(alpha.id, CTX)

    kept = await kept_of(sqlite)
    assert "alpha" not in kept
    assert "the first answer" not in kept
    assert "the second answer" in kept
    assert [name for name in await names(sqlite.journal) if name.startswith("tool:")] == ["tool:c1", "tool:c1~2"]


@pytest.mark.parametrize("key", ["uni\x07ts", "\x1bunits", "  uni \t ts\n"])
async def test_a_call_is_erased_with_its_fact_however_the_model_spelled_the_key(sqlite: Place, key: str):
    memory = Memory(sqlite.provider)
    script = Script([[remember(key=key, fact="kilometres")], "Noted."])
    turns = TurnRunner(Assistant(model=script.model(), memory=memory), sqlite.journal)

    await turns.start("hello", ctx=CTX, run_id="r1")
    [entry] = await memory.read_back(CTX)
    await memory.forget(entry.id, CTX)

    assert "kilometres" not in await kept_of(sqlite)
