"""What a turn does between its checkpoints, and what cannot change it once it is recorded."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

import onfile.runs
from onfile.memory import Memory
from onfile.provider import StoreMemory
from onfile.records import MemoryOrigin
from onfile.runs.assistant import Assistant
from onfile.runs.inline import InlineJournal
from onfile.runs.journal import NonDeterminismError, RunFenced, RunSuspended, RunUnavailable
from onfile.runs.loop import StageMissing
from onfile.runs.retrieval import EmbeddingReranker, Passage, Rerank, Retrieval, Retrieve
from onfile.runs.runner import TurnRunner
from onfile.runs.tools import ToolContext, action_tool, read_tool
from onfile.scopes import ScopeContext
from onfile.skills import CodeSkills, skill
from onfile.testing import InMemoryMemoryProvider
from tests.runs.conftest import Place
from tests.runs.script import CTX, Script, call, names, remember, value

shipped: list[str] = []


@action_tool
def ship(order: str) -> str:
    """Ship an order."""
    shipped.append(order)
    return f"shipped {order}"


@skill()
def label_a_pallet() -> str:
    """How pallets are labelled."""
    return "Print two labels."


class Shelf:
    async def retrieve(self, request: Retrieve) -> list[Passage]:
        return [Passage(text=f"{word} about {request.query}", source="handbook") for word in ("first", "second")]


class Backwards:
    async def rerank(self, request: Rerank) -> list[Passage]:
        return list(reversed(request.passages))


async def provider_with(*facts: tuple[str, str]) -> InMemoryMemoryProvider:
    provider = InMemoryMemoryProvider()
    for key, text in facts:
        origin = MemoryOrigin(author="human")
        await provider.write(StoreMemory(key=key, text=text, scope="actor:ana", origin=origin, ctx=CTX))
    return provider


async def test_the_prompt_has_its_five_parts_in_order_and_tells_the_stable_ones_apart():
    script = Script(["Hello."])
    parts = Assistant(
        model=script.model(),
        base_prompt=lambda ctx: f"BASE for {ctx.actor.tenant_ref}",
        contributors=["ONE", lambda ctx: None, "TWO"],
        memory=Memory(await provider_with(("units", "kilometres"))),
        retrieval=Retrieval(retriever=Shelf(), reranker=Backwards(), max_passages=1),
        skills=[CodeSkills(label_a_pallet)],
    )

    await TurnRunner(parts, InlineJournal()).start("pallets", ctx=CTX)

    [sent] = script.parts
    assert [text.split("\n")[0] for text, _ in sent] == [
        "BASE for acme",
        "ONE",
        "TWO",
        "<memory>",
        "<passages>",
        "<skills>",
    ]
    assert [dynamic for _, dynamic in sent] == [False, False, False, True, True, True]
    assert sent[4][0].endswith("[1] handbook\n> second about pallets\n</passages>")


async def test_passages_are_reranked_by_the_same_embedder_as_facts_are():
    class Counted:
        model, dimensions = "made-up", 2

        async def embed_query(self, text):
            return (1.0, 0.0)

        async def embed_documents(self, texts):
            return [{"far": (0.0, 1.0), "near": (2.0, 0.1), "none": (0.0, 0.0)}[text] for text in texts]

    class Three:
        async def retrieve(self, request: Retrieve) -> list[Passage]:
            return [Passage(text=text) for text in ("far", "none", "near")]

    by_nearness = Retrieval(retriever=Three(), reranker=EmbeddingReranker(Counted()))
    near_only = Retrieval(retriever=Three(), reranker=EmbeddingReranker(Counted(), nearest=0.5))

    assert [one.text for one in await by_nearness.passages("hello", CTX)] == ["near", "far", "none"]
    assert [one.text for one in await near_only.passages("hello", CTX)] == ["near"]


async def test_a_model_class_that_knows_no_parts_gets_the_same_text_as_instructions():
    script = Script(["Hello."])

    await TurnRunner(Assistant(model=script.model(), base_prompt="A", contributors=["B"]), InlineJournal()).start(
        "hi", ctx=CTX
    )

    assert script.requests[0][-1].instructions == "A\n\nB"


async def test_nothing_that_changes_between_parking_and_resuming_changes_what_the_run_sees(place: Place):
    provider, engine = place.provider, place.journal
    await provider.write(
        StoreMemory(key="units", text="km", scope="actor:ana", origin=MemoryOrigin(author="human"), ctx=CTX)
    )
    first, second = (Script([[call("ship", order="o1")], "Done."]) for _ in range(2))
    before = Assistant(
        model=first.model(),
        base_prompt="BASE",
        memory=Memory(provider),
        skills=[CodeSkills(label_a_pallet)],
        tools=[ship],
    )
    await TurnRunner(before, engine).start("hello", ctx=CTX, run_id="r1")

    # Another prompt, another resolver, other rows, read-only, no skills, other tools, fewer steps.
    await provider.write(
        StoreMemory(key="new", text="row", scope="actor:ana", origin=MemoryOrigin(author="human"), ctx=CTX)
    )
    after = Assistant(
        model=second.model(),
        base_prompt="CHANGED",
        contributors=["CHANGED"],
        memory=Memory(ReadOnly(), scopes=lambda ctx: ["global"]),
        retrieval=Retrieval(retriever=Shelf()),
        tools=[ship, read_tool(weather)],
        asks=True,
        max_steps=1,
    )
    resumed = TurnRunner(after, engine)
    await resumed.decide("r1", "c1", approved=True)
    result = await resumed.resume("r1")

    assert result.text == "Done."
    assert second.prompts == first.prompts
    assert second.offered == first.offered == [["ship", "skill", "remember"]]


async def test_a_run_sends_the_block_that_it_recorded_however_it_would_be_worded_now():
    engine = InlineJournal()
    first, second = (Script([[call("ship", order="o1")], "Done."]) for _ in range(2))
    memory = Memory(await provider_with(("units", "kilometres")))
    await TurnRunner(Assistant(model=first.model(), memory=memory, tools=[ship]), engine).start(
        "hello", ctx=CTX, run_id="r1"
    )
    # As an onfile with another wording would have recorded it.
    journal = engine._shelf.journals["r1"]
    place = [name for name, _ in journal].index("memory:digest")
    journal[place] = ("memory:digest", journal[place][1].replace("<memory>", "<memory>\\nWorded otherwise."))

    resumed = TurnRunner(Assistant(model=second.model(), memory=memory, tools=[ship]), engine)
    await resumed.decide("r1", "c1", approved=True)
    await resumed.resume("r1")

    assert second.prompts == [first.prompts[0].replace("<memory>", "<memory>\nWorded otherwise.")]


class ReadOnly:
    async def list(self, request):
        return []

    async def forget(self, request):
        return False


def weather(city: str) -> str:
    """Look up the weather."""
    return f"rain in {city}"


async def test_an_action_that_was_recorded_is_never_run_unapproved_by_a_process_that_does_not_know_it(place: Place):
    engine, script = place.journal, Script([[call("ship", order="o1")], "Done."])
    await TurnRunner(Assistant(model=script.model(), tools=[ship]), engine).start("hello", ctx=CTX, run_id="r1")
    stranger = TurnRunner(Assistant(model=script.model()), engine)

    assert (await stranger.resume("r1")).status == "waiting"
    await stranger.decide("r1", "c1", approved=True)
    assert (await stranger.resume("r1")).status == "done"

    assert "no such tool" in (await value(engine, "tool:c1"))["message"]


async def test_a_tool_that_became_an_action_waits_even_in_a_run_that_knew_it_as_a_read():
    asked = call("ask", questions=[{"question": "?", "default": "a"}])
    engine, script = InlineJournal(), Script([[asked], [call("ship", "c2", order="o1")], "Done."])
    harmless = read_tool(ship.function)
    await TurnRunner(Assistant(model=script.model(), tools=[harmless], asks=True), engine).start(
        "hello", ctx=CTX, run_id="r1"
    )
    stricter = TurnRunner(Assistant(model=script.model(), tools=[ship], asks=True), engine)
    await stricter.answer("r1", "c1", None)
    shipped.clear()

    result = await stricter.resume("r1")

    assert result.pending is not None and result.pending.tool == "ship"
    assert shipped == []


async def test_a_stage_that_a_run_needs_and_a_process_lacks_is_named_and_the_run_is_kept():
    engine, script = InlineJournal(), Script(["Hello."])

    class Down(InMemoryMemoryProvider):
        async def list(self, request):
            raise ConnectionError

    with pytest.raises(ConnectionError):
        await TurnRunner(Assistant(model=script.model(), memory=Memory(Down())), engine).start(
            "hello", ctx=CTX, run_id="r1"
        )
    assert (await engine.get("r1")).error == "ConnectionError"
    with pytest.raises(StageMissing, match="was started with memory"):
        await TurnRunner(Assistant(model=script.model()), engine).resume("r1")

    done = await TurnRunner(Assistant(model=script.model(), memory=Memory(InMemoryMemoryProvider())), engine).resume(
        "r1"
    )
    assert done.text == "Hello."


async def test_code_that_asks_for_another_checkpoint_is_told_and_the_model_is_not():
    engine, script = InlineJournal(), Script([[call("ship", order="o1")], "Done."])
    await TurnRunner(Assistant(model=script.model(), tools=[ship]), engine).start("hello", ctx=CTX, run_id="r1")
    journal = engine._shelf.journals["r1"]
    journal[4] = ("llm:zero", journal[4][1])
    await engine.signal("r1", "approval:c1", {"approved": True})

    with pytest.raises(NonDeterminismError, match="step 5 of run r1 was recorded as 'llm:zero'"):
        await TurnRunner(Assistant(model=script.model(), tools=[ship]), engine).resume("r1")


@pytest.mark.parametrize(
    "stops",
    [
        RunFenced("r1"),
        RunSuspended(run_id="r9", waits_for="approval:c9"),
        NonDeterminismError(run_id="r9", position=1, expected="llm:0", found="llm:1"),
    ],
    ids=["fenced", "suspended", "replayed"],
)
@pytest.mark.parametrize("kind", ["read", "action", "remember"])
async def test_what_stops_a_run_is_never_told_to_the_model_as_a_failure_of_its_tool(stops, kind):
    def stopping() -> str:
        """Carry a run of its own, which is stopped."""
        raise stops

    class Stopping(InMemoryMemoryProvider):
        async def write(self, request):
            raise stops

    tools = {"read": [read_tool(stopping)], "action": [action_tool(stopping)]}.get(kind, [])
    calls = [remember() if kind == "remember" else call("stopping")]
    engine, script = InlineJournal(), Script([calls, "Done."])
    turns = TurnRunner(Assistant(model=script.model(), memory=Memory(Stopping()), tools=tools), engine)
    work = turns.start("hello", ctx=CTX, run_id="r1")
    if kind == "action":
        await work
        await turns.decide("r1", "c1", approved=True)
        work = turns.resume("r1")

    if isinstance(stops, NonDeterminismError):
        with pytest.raises(NonDeterminismError):
            await work
    else:
        assert (await work).status == "running"

    recorded = await names(engine)
    assert not [name for name in recorded if name.startswith(("tool:", "persist:toolfail", "persist:toolexec"))]
    assert len(script.requests) == 1


async def test_a_parked_run_holds_no_connection_and_no_task(place: Place):
    script = Script([[call("ship", order="o1")], "Done."])
    before = asyncio.all_tasks()

    await TurnRunner(Assistant(model=script.model(), tools=[ship]), place.journal).start("hello", ctx=CTX)

    assert asyncio.all_tasks() == before
    assert place.engine is None or place.engine.pool.checkedout() == 0


async def test_reads_of_one_step_run_together_and_are_recorded_in_the_order_of_the_calls():
    both = asyncio.Barrier(2)

    @read_tool
    async def meet(name: str) -> str:
        """Wait for the other."""
        await asyncio.wait_for(both.wait(), 5)
        return name

    engine, script = InlineJournal(), Script([[call("meet", name="a"), call("meet", "c2", name="b")], "Done."])
    await TurnRunner(Assistant(model=script.model(), tools=[meet]), engine).start("hello", ctx=CTX, run_id="r1")

    assert [part.content for part in script.requests[1][-1].parts] == ["a", "b"]


async def test_a_call_id_that_a_model_uses_twice_gets_a_name_of_its_own():
    reads = read_tool(weather)
    engine, script = InlineJournal(), Script([[call("weather", city="Bonn")], [call("weather", city="Kiel")], "Done."])

    await TurnRunner(Assistant(model=script.model(), tools=[reads]), engine).start("hello", ctx=CTX, run_id="r1")

    recorded = await names(engine)
    assert "tool:c1" in recorded and "tool:c1~2" in recorded
    assert (await value(engine, "tool:c1~2"))["message"] == "rain in Kiel"


async def test_a_turn_stops_after_its_last_step_with_every_call_answered():
    engine, script = InlineJournal(), Script([[call("weather", f"c{n}", city="Bonn")] for n in range(9)])
    turns = TurnRunner(Assistant(model=script.model(), tools=[read_tool(weather)]), engine)

    result = await turns.start("hello", ctx=CTX, run_id="r1")

    assert (result.status, result.stopped, len(script.requests)) == ("done", "max_steps", 8)
    thread = await engine.read_thread("t1")
    assert [entry.kind for entry in thread] == ["user", *["assistant", "tool"] * 8]


async def test_text_is_handed_over_as_it_comes_and_not_again_on_a_replay():
    heard: list[str] = []
    engine, script = InlineJournal(), Script([[call("ship", order="o1")], "It is shipped."])
    turns = TurnRunner(Assistant(model=script.model(), tools=[ship]), engine)
    await turns.start("hello", ctx=CTX, run_id="r1", on_text=heard.append)
    await turns.decide("r1", "c1", approved=True)

    result = await turns.resume("r1", on_text=heard.append)
    await turns.resume("r1", on_text=heard.append)

    assert heard == ["It ", "is ", "shipped. "]
    assert result.text == "It is shipped. "


async def test_a_fact_of_this_turn_reaches_the_model_as_a_result_and_the_next_turn_in_the_block():
    memory, engine = Memory(await provider_with(("greeting", "short"))), InlineJournal()
    script, later = Script([[remember()], "Noted."]), Script(["Hello."])
    await TurnRunner(Assistant(model=script.model(), memory=memory), engine).start("hello", ctx=CTX)
    await TurnRunner(Assistant(model=later.model(), memory=memory), engine).start("again", ctx=CTX)

    assert script.prompts[0] == script.prompts[1]
    assert "Recorded [actor:ana] units: kilometres" in script.requests[1][-1].parts[0].content
    assert "units: kilometres" in later.prompts[0]


async def test_remember_is_offered_only_where_the_run_can_write_and_refused_in_words_elsewhere():
    shared = ScopeContext(actor=CTX.actor, thread_id="t1", shared=True)
    engine, script = InlineJournal(), Script([[remember()], "I cannot."])
    provider = InMemoryMemoryProvider()

    await TurnRunner(Assistant(model=script.model(), memory=Memory(provider)), engine).start(
        "hello", ctx=shared, run_id="r1"
    )

    assert script.offered[0] == []
    assert (await value(engine, "tool:c1"))["ok"] is False
    assert await Memory(provider).read_back(CTX) == ()


async def test_a_skill_that_the_run_does_not_offer_is_refused_with_what_it_does():
    engine, script = InlineJournal(), Script([[call("skill", name="close the books")], "I cannot."])

    await TurnRunner(Assistant(model=script.model(), skills=[CodeSkills(label_a_pallet)]), engine).start(
        "hello", ctx=CTX, run_id="r1"
    )

    assert (await value(engine, "tool:c1"))["message"].endswith("On offer: label-a-pallet.")


async def test_a_tool_gets_its_context_and_the_model_does_not_see_that_it_does():
    seen: list[ToolContext] = []

    @read_tool
    def whoami(context: ToolContext, loud: bool = False) -> dict:
        """Tell who asks."""
        seen.append(context)
        return {"actor": context.ctx.actor.id}

    engine, script = InlineJournal(), Script([[call("whoami")], "Ana."])
    await TurnRunner(Assistant(model=script.model(), tools=[whoami]), engine).start("hello", ctx=CTX, run_id="r1")

    assert list(whoami.json_schema["properties"]) == ["loud"]
    assert (seen[0].run_id, seen[0].tool_call_id) == ("r1", "c1")
    assert (await value(engine, "tool:c1"))["message"] == '{"actor": "ana"}'


async def test_arguments_that_do_not_fit_are_told_to_the_model():
    engine, script = InlineJournal(), Script([[call("weather", town="Bonn")], "Sorry."])

    await TurnRunner(Assistant(model=script.model(), tools=[read_tool(weather)]), engine).start(
        "hello", ctx=CTX, run_id="r1"
    )

    assert "city: Field required" in (await value(engine, "tool:c1"))["message"]
    assert (await names(engine))[8] == "persist:toolfail:c1"


@pytest.mark.parametrize("name", ["remember", "skill", "ask"])
def test_what_the_loop_offers_itself_cannot_be_registered(name: str):
    def tool() -> str:
        return ""

    tool.__name__ = name
    with pytest.raises(ValueError, match="which the loop offers itself"):
        Assistant(model="test", tools=[read_tool(tool)])


def test_a_bare_function_among_the_tools_is_named_with_what_to_put_before_it():
    def look_up(order: str) -> str:
        return order

    with pytest.raises(TypeError, match=r"look_up .*@read_tool .*@action_tool"):
        Assistant(model="test", tools=[look_up])


async def test_a_run_that_its_owner_left_is_recovered_and_one_of_another_owner_is_not():
    engine, script = InlineJournal(), Script(["Hello."])
    assistant = Assistant(model=script.model())
    for run_id, owner in (("r1", "a"), ("r2", "b")):
        await engine.create(onfile.runs.NewRun(id=run_id, text="hello", ctx=CTX))
        await engine.claim(run_id, owner=owner)

    recovered = await TurnRunner(assistant, engine, owner="a").recover()

    assert [result.run_id for result in recovered] == ["r1"]
    assert (await engine.get("r2")).status == "running"


async def test_a_run_that_does_not_exist_is_told_in_words():
    with pytest.raises(RunUnavailable, match="there is no run r9"):
        await TurnRunner(Assistant(model="test"), InlineJournal()).resume("r9")


def test_every_public_name_is_there_and_reading_a_journal_needs_no_models():
    assert all(hasattr(onfile.runs, name) for name in onfile.runs.__all__)
    code = "import sys; from onfile.runs import SqlJournal, InlineJournal; print('pydantic_ai' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"
