"""`onfile runs`: what an operator sees of turns and does with them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from onfile.cli import runs
from onfile.cli.failures import Failure
from onfile.memory import Memory
from onfile.provider import StoreMemory
from onfile.records import MemoryOrigin
from onfile.runs.assistant import Assistant
from onfile.runs.journal import NewRun, RunHeld
from onfile.runs.runner import TurnRunner
from onfile.runs.sql import SqlJournal
from onfile.runs.tools import action_tool
from onfile.stores import SqlMemoryProvider
from tests.runs.script import CTX, Script, call, remember

SCRIPT = Script([[call("ship", order="o1")], "It is shipped."])


@action_tool
def ship(order: str) -> str:
    """Ship an order."""
    return f"shipped {order}"


def answering(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    said = str(messages[-1].parts[0].content)
    if "raise" in said:
        raise ConnectionError(said)
    asked = call("ask", questions=[{"question": "How many?", "default": "three"}])
    return ModelResponse(parts=[asked] if "ask" in said else [TextPart(f"Heard {said}")])


hearing = Assistant(model=FunctionModel(answering), base_prompt="BASE  two\tspaces " + "long " * 40, asks=True)
assistant = Assistant(model=SCRIPT.model(), base_prompt="BASE", tools=[ship])


@pytest.fixture
def onfile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Run a command on the test's own database; answer what it printed."""
    application = typer.Typer()
    runs.add_to(application)

    @application.callback()
    def start() -> None:
        pass

    def run(*arguments: str) -> str:
        capsys.readouterr()
        application(args=["runs", *arguments, "--db", str(tmp_path / "onfile.db")], standalone_mode=False)
        printed = capsys.readouterr()
        return printed.out + printed.err

    return run


@pytest.fixture
def parked(tmp_path: Path) -> str:
    """One run that waits for an approval, with a fact in its block."""

    async def start() -> None:
        provider = SqlMemoryProvider.from_url(f"sqlite:///{tmp_path}/onfile.db")
        await provider.setup()
        journal = SqlJournal(provider.engine)
        await journal.setup()
        origin = MemoryOrigin(author="human")
        await provider.write(StoreMemory(key="units", text="kilometres", scope="actor:ana", origin=origin, ctx=CTX))
        turns = Assistant(model=SCRIPT.model(), base_prompt="BASE", memory=Memory(provider), tools=[ship])
        await TurnRunner(turns, journal).start("Please ship o1.", ctx=CTX, run_id="r1")
        await provider.aclose()

    asyncio.run(start())
    return "r1"


@pytest.fixture
def heard(tmp_path: Path) -> Callable[..., None]:
    """Start turns of these texts, each under its place as id; they are left ready where they are to be queued."""

    def start(*texts: str, queued: bool = False, owner: str | None = None) -> None:
        async def starting() -> None:
            provider = SqlMemoryProvider.from_url(f"sqlite:///{tmp_path}/onfile.db")
            await provider.setup()
            journal = SqlJournal(provider.engine)
            await journal.setup()
            for place, said in enumerate(texts):
                run = NewRun(id=f"r{place}", text=said, ctx=CTX)
                if owner is not None:
                    await journal.begin(run, owner=owner)
                elif queued:
                    await journal.create(run)
                else:
                    with contextlib.suppress(ConnectionError):
                        await TurnRunner(hearing, journal).start(said, ctx=CTX, run_id=run.id)
            await provider.aclose()

        asyncio.run(starting())

    return start


def test_a_run_is_listed_with_what_it_waits_for(onfile, parked):
    assert "waiting, waits for approval:c1  ana: Please ship o1." in onfile("list")
    assert json.loads(onfile("list", "--json"))[0]["waitsFor"] == "approval:c1"
    assert onfile("list", "--status", "done") == "no runs\n"


def test_a_run_is_shown_with_its_journal_its_prompt_and_why(onfile, parked):
    page = onfile("show", "r1")

    assert "  5  memory:digest" in page
    assert "  8  persist:toolcall:c1  ship (action)" in page
    assert "- [actor:ana] units: kilometres" in page
    assert "- Memory was searched by the user's own words at" in page or "- Memory was listed at 3 scopes" in page
    assert "- On offer: ship (action), remember (memory)." in page
    told = json.loads(onfile("show", "r1", "--json"))
    assert told["prompt"].startswith("BASE\n\n<memory>")
    assert [one["name"] for one in told["journal"]][-1] == "persist:toolcall:c1"


@pytest.mark.parametrize(("act", "line"), [(["approve"], "tool:c1  shipped o1"), (["reject"], "persist:toolreject:c1")])
def test_an_action_is_decided_and_the_run_carried_on(onfile, parked, act, line):
    assert "ship of run r1" in onfile(*act, "r1")

    assert "It is shipped." in onfile("resume", "r1", "--assistant", f"{__name__}:assistant")

    assert line in onfile("show", "r1")
    with pytest.raises(Failure, match="waits for no approval; it is done"):
        onfile("approve", "r1")


def test_a_cancelled_run_has_ended(onfile, parked):
    assert onfile("cancel", "r1") == "cancelled: run r1\n"

    with pytest.raises(Failure, match="had ended before; it is cancelled"):
        onfile("cancel", "r1")


def test_a_run_that_is_not_there_is_told_in_a_sentence(onfile, parked):
    for command in ("show", "approve", "cancel"):
        with pytest.raises(Failure, match="there is no run r9 in this database"):
            onfile(command, "r9")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("nowhere", "names no object"),
        ("no_such_module:x", "no module no_such_module"),
        ("json:dumps", "not an onfile.runs.Assistant"),
    ],
)
def test_an_assistant_that_is_not_there_is_told_in_a_sentence(onfile, parked, path, said):
    with pytest.raises(Failure, match=said):
        onfile("resume", "--assistant", path)


def test_dbos_beside_sqlite_needs_a_place_for_its_own_tables(onfile, parked):
    with pytest.raises(Failure, match="name it with --system-database"):
        onfile("worker", "--assistant", f"{__name__}:assistant", "--name", "w1", "--dbos")


def test_a_run_that_a_worker_carries_is_left_to_it(onfile, parked, tmp_path):
    async def carried_by_w1() -> None:
        provider = SqlMemoryProvider.from_url(f"sqlite:///{tmp_path}/onfile.db")
        await SqlJournal(provider.engine).begin(NewRun(id="r2", text="hello", ctx=CTX), owner="w1")
        await provider.aclose()

    asyncio.run(carried_by_w1())

    assert "running, carried by w1  ana: hello" in onfile("list")
    with pytest.raises(RunHeld, match="carried by w1, who was seen a moment ago; leave it to them"):
        onfile("resume", "r2", "--assistant", f"{__name__}:assistant")


def test_runs_that_failed_are_carried_on_together(onfile, parked, tmp_path):
    async def failed() -> None:
        provider = SqlMemoryProvider.from_url(f"sqlite:///{tmp_path}/onfile.db")
        journal = SqlJournal(provider.engine)
        await journal.begin(NewRun(id="r2", text="hello", ctx=CTX), owner="w1")
        await journal.give_up("r2", epoch=1, error="ConnectionError")
        await provider.aclose()

    asyncio.run(failed())

    assert onfile("resume", "--assistant", f"{__name__}:assistant") == "no run was left to carry on\n"
    assert onfile("resume", "--failed", "--assistant", f"{__name__}:assistant") == (
        "r2: waiting, waits for approval of ship\n"
    )


def test_the_prompt_is_shown_as_it_was_sent_and_nobodys_words_move_a_cursor(onfile, heard):
    heard("hello \x1b]0;mine\x07\u202e\ud800")

    shown = onfile("show", "r0")
    assert f"\n{hearing.base_prompt}\n" in shown
    assert r"ana said: hello \x1b]0;mine\x07\u202e\ud800" in shown
    assert r"hello \x1b]0;mine\x07\u202e\ud800" in onfile("list")
    assert json.loads(onfile("show", "r0", "--json"))["text"] == "hello \x1b]0;mine\x07\u202e\ud800"


def test_what_a_run_waits_for_is_shown_whole(onfile, parked, heard):
    assert 'ship {"order": "o1"}\nDecide it with \'onfile runs approve r1\'' in onfile("show", "r1")

    heard("ask me")
    assert "How many? [three]\n" in onfile("show", "r0")
    with pytest.raises(Failure, match=r"waits for answers, not for an approval.*'onfile runs answer r0'"):
        onfile("approve", "r0")


@pytest.mark.parametrize(("said", "kept"), [(["four"], "four"), ([""], "three"), (["--skip"], "three")])
def test_a_question_is_answered_or_left_at_its_default(onfile, heard, said, kept):
    heard("ask me")

    assert "answered: run r0" in onfile("answer", "r0", *said)
    onfile("resume", "r0", "--assistant", f"{__name__}:hearing")

    told = json.loads(onfile("show", "r0", "--json"))
    [result] = [one["value"] for one in told["journal"] if one["name"].startswith("tool:")]
    assert kept in json.dumps(result)
    with pytest.raises(Failure, match="waits for no answer; it is done"):
        onfile("answer", "r0", *said)


@pytest.mark.parametrize("said", [[], ["four", "five"], ["four", "--skip"]])
def test_answers_that_fit_no_question_are_not_taken(onfile, heard, said):
    heard("ask me")

    with pytest.raises(Failure, match=r"an answer to each question|asks 1 question, and here are 2 answers"):
        onfile("answer", "r0", *said)
    assert "How many? [three]" in onfile("show", "r0")


def test_an_approval_is_not_given_as_an_answer(onfile, parked):
    with pytest.raises(Failure, match=r"waits for an approval, not for answers.*'onfile runs approve r1'"):
        onfile("answer", "r1", "yes")


def test_a_rejection_is_shown_with_its_reason(onfile, parked):
    onfile("reject", "r1", "--reason", "wrong order")
    onfile("resume", "r1", "--assistant", f"{__name__}:assistant")

    assert "approval:c1  rejected: wrong order" in onfile("show", "r1")


def test_a_status_that_there_is_not_is_told_with_those_there_are(onfile, parked):
    with pytest.raises(Failure, match="one of ready, running, waiting, done, failed, cancelled"):
        onfile("list", "--status", "finished")


def test_a_run_that_fails_is_told_and_keeps_no_other_from_going_on(onfile, heard):
    heard("raise this", "hello", queued=True)

    for further in ((), ("--failed",), ("r0",)):
        printed = onfile("resume", *further, "--assistant", f"{__name__}:hearing")
        assert "r0: stopped. The model did not answer (ConnectionError); the run is kept" in printed
        assert "raise this" not in printed
    assert "done  ana: hello" in onfile("list")
    assert "failed, stopped by ConnectionError" in onfile("show", "r0")


def test_a_living_process_that_never_told_its_name_keeps_its_runs(onfile, heard):
    heard("hello", owner="local")

    assert onfile("resume", "--assistant", f"{__name__}:hearing") == "no run was left to carry on\n"
    with pytest.raises(RunHeld, match="carried by local, who was seen a moment ago"):
        onfile("resume", "r0", "--assistant", f"{__name__}:hearing")

    assert "Heard hello" in onfile("resume", "--owner", "local", "--assistant", f"{__name__}:hearing")


def test_a_thread_is_deleted_with_its_ended_runs_once_somebody_is_sure(onfile, heard):
    heard("hello")
    assert "In thread t1\nana said: hello" in onfile("show", "r0")

    with pytest.raises(Failure, match="say --yes"):
        onfile("delete-thread", "t1")
    assert onfile("delete-thread", "t1", "--yes") == "deleted: 2 messages of thread t1, with its ended runs\n"

    assert onfile("list") == "no runs\n"
    with pytest.raises(Failure, match="there is no thread t1"):
        onfile("delete-thread", "t1", "--yes")


def test_a_run_whose_remembered_fact_was_forgotten_says_so(onfile, tmp_path):
    async def remembered_and_forgotten() -> None:
        provider = SqlMemoryProvider.from_url(f"sqlite:///{tmp_path}/onfile.db")
        await provider.setup()
        journal, memory = SqlJournal(provider.engine), Memory(provider)
        await journal.setup()
        noting = Assistant(model=Script([[remember()], "Noted."]).model(), memory=memory)
        await TurnRunner(noting, journal).start("hello", ctx=CTX, run_id="r1")
        [entry] = await memory.read_back(CTX)
        await memory.forget(entry.id, CTX)
        await provider.aclose()

    asyncio.run(remembered_and_forgotten())

    shown = onfile("show", "r1")
    assert "- Calls of remember are erased from this journal in 3 places" in shown
    assert "kilometres" not in shown
