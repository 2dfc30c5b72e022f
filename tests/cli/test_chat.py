"""`onfile chat`: a conversation that remembers, asks before it acts, and outlives its process."""

from __future__ import annotations

import json
import re
import signal
import time
from pathlib import Path

import pytest

RUN = re.compile(r"onfile runs show (run_\w+)")
ANA = ("--actor", "ana", "--tenant", "acme", "--db", "facts.db")
OWN = ("chat", *ANA, "--thread", "t1", "--assistant", "own:assistant")

STALLING = """
import asyncio
from pathlib import Path
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from onfile import Memory
from onfile.runs import Assistant
from onfile.stores import SqlMemoryProvider

async def stream(messages, info):
    results = sum(isinstance(one, ModelResponse) for one in messages)
    if not results:
        yield {0: DeltaToolCall(name="remember", json_args='{"key": "units", "fact": "kilometres"}', tool_call_id="c1")}
        return
    yield "Noted, "
    if not Path("go").exists():
        Path("stalled").touch()
        await asyncio.sleep(600)
    yield "and finished."

assistant = Assistant(
    model=FunctionModel(stream_function=stream),
    memory=Memory(SqlMemoryProvider.from_url("sqlite+aiosqlite:///facts.db")),
)
"""


@pytest.fixture
def conversation(onfile):
    """Hold a conversation, one message a line."""

    def hold(*lines: str, options: tuple[str, ...] = ()):
        return onfile("chat", *ANA, *options, stdin="".join(f"{line}\n" for line in lines))

    return hold


def test_without_a_model_it_says_plainly_that_a_script_answers_and_what_to_do(conversation):
    ended = conversation("hello")

    assert ended.code == 0
    assert "No model was named, so a script answers" in ended.err
    assert "--model openai:gpt-5" in ended.err
    assert ended.out.startswith("I am a script, not a language model.")


def test_what_it_remembered_in_one_thread_answers_in_the_next(conversation):
    first = conversation("remember that my units are kilometres", "which units do I use?")
    second = conversation("what do you know about me?")

    assert "Recorded [actor:ana] units: kilometres." in first.out
    assert "· remembered units: kilometres" in first.err
    assert "Units: kilometres ([actor:ana], my own note)." in first.out
    assert "- units: kilometres ([actor:ana], my own note)" in second.out
    threads = [re.search(r"conversation (thr_\w+)", ended.err)[1] for ended in (first, second)]
    assert threads[0] != threads[1]


def test_a_new_thread_begins_inside_the_conversation_and_the_old_one_is_found_again(conversation):
    ended = conversation("my dock is door 9", "/new", "which dock do I use?", "what did I say before?", "/threads")

    assert "Dock: door 9" in ended.out
    assert "- my dock is door 9" not in ended.out, "what was said stays in its thread, what is on file does not"
    lines = [line for line in ended.err.splitlines() if line.startswith("  thr_")]
    assert [line.split("  ")[-1] for line in lines] == ["which dock do I use?", "my dock is door 9"]

    back = conversation("what did I say before?", options=("--thread", lines[1].split()[0]))
    assert "- my dock is door 9" in back.out


def test_an_action_is_done_only_once_a_person_has_said_yes(conversation):
    ended = conversation("book 12 pallets to Bremen", "maybe", "y", "book 3 crates to Bonn", "n too late")

    assert "It wants to do this: book: 12 pallets to Bremen" in ended.err
    assert ended.out.count("Booked in play: 12 pallets to Bremen.") == 1
    assert "They said: too late" in ended.out
    assert "book: 3 crates to Bonn (rejected, not done)" in ended.err


def test_a_question_of_the_model_s_is_answered_or_skipped(conversation):
    assert "Booked in play: five crates to Bonn." in conversation("book", "five crates to Bonn", "yes").out
    assert "Then nothing is booked." in conversation("book", "").out


def test_an_approval_that_nobody_gave_is_asked_for_again_next_time(conversation):
    left = conversation("book 12 pallets to Bremen")
    thread = re.search(r"--thread (thr_\w+)", left.err)[1]
    assert "It waits, for as long as it takes" in left.err

    back = conversation("yes", options=("--thread", thread))

    assert "You had said: book 12 pallets to Bremen" in back.err
    assert back.out.count("Booked in play: 12 pallets to Bremen.") == 1


def test_every_turn_names_its_run_and_the_run_explains_it(conversation, onfile):
    run = RUN.search(conversation("remember that my units are kilometres", "/new", "which units?").err.split("/new")[0])
    second = RUN.findall(conversation("which units do I use?").err)[0]
    assert run

    page = onfile("runs", "show", second, "--db", "facts.db").out

    assert "ana said: which units do I use?" in page
    assert "- [actor:ana] units: kilometres" in page
    assert "- Memory was " in page
    assert "memory:digest" in page
    assert "The assistant said: Units: kilometres" in page


def test_memory_is_shown_with_who_said_so_and_what_it_beats(conversation, onfile):
    onfile("publish", "--scope", "tenant:acme", "--key", "units", "miles", "--db", "facts.db")

    ended = conversation("remember that my units are kilometres", "/memory", "/help", "/quit", "not reached")

    assert "[actor:ana] units: kilometres (the assistant's note)" in ended.err
    assert "instead of [tenant:acme] miles" in ended.err
    assert "/threads        your conversations" in ended.err
    assert "not reached" not in ended.out


def test_nobody_goes_on_with_somebody_else_s_thread(conversation, onfile):
    thread = re.search(r"conversation (thr_\w+)", conversation("my dock is door 9").err)[1]

    for person in (("--actor", "bo", "--tenant", "acme"), ("--actor", "ana")):
        ended = onfile("chat", *person, "--db", "facts.db", "--thread", thread, stdin="what did I say before?\n")
        assert (ended.code, ended.out) == (2, "")
        assert "there is no conversation" in ended.err


def test_what_a_model_says_moves_no_cursor(conversation):
    ended = conversation("remember that my motto is \x1b]0;owned\x07loud", "what is my motto?", "/memory")

    assert "\x1b]" not in ended.out + ended.err
    assert "loud" in ended.out


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("openai:gpt-5", "openai:gpt-5 has no key: set the OPENAI_API_KEY environment variable"),
        ("nobody:nothing", "nobody:nothing cannot be used: Unknown model"),
        ("gpt-5", "gpt-5 cannot be used"),
    ],
)
def test_a_model_that_cannot_be_asked_is_one_sentence(onfile, monkeypatch, model, said):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    ended = onfile("chat", *ANA, "--model", model)

    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert said in ended.err


def test_without_the_packages_for_turns_it_says_what_to_install(onfile, monkeypatch):
    monkeypatch.setattr("onfile.cli.assistants.find_spec", lambda name: None)

    ended = onfile("chat", *ANA)

    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "pip install 'onfile[cli,runs]'" in ended.err


@pytest.fixture
def stalled(started):
    """A conversation whose turn has remembered a fact and stands still in its answer, until there is a file `go`."""
    Path("own.py").write_text(STALLING)
    conversation = started(*OWN)
    conversation.stdin.write(b"I think in kilometres\n")
    conversation.stdin.flush()
    wait_until(Path("stalled").exists)
    return conversation


def test_killed_in_the_middle_of_a_turn_the_next_one_finishes_it_first_and_says_so(stalled, process, onfile):
    stalled.kill()
    stalled.wait(timeout=20)
    assert stalled.returncode == -signal.SIGKILL
    Path("go").touch()

    done = process(*OWN, stdin=b"")

    told = done.stderr.decode()
    assert done.returncode == 0, told
    assert "The last turn was not finished; going on with it. You had said: I think in kilometres" in told
    assert "· remembered units: kilometres" in told
    assert done.stdout.decode() == "Noted, and finished.\n"
    mine = json.loads(onfile("list", "--db", "facts.db", "--json").out)
    assert [(one["key"], one["text"]) for one in mine] == [("units", "kilometres")]
    assert "was not finished" not in process(*OWN, stdin=b"").stderr.decode()


def test_ctrl_c_leaves_cleanly_and_the_turn_is_kept(stalled, process):
    stalled.send_signal(signal.SIGINT)
    _, err = stalled.communicate(timeout=20)
    Path("go").touch()

    assert stalled.returncode == 0
    assert b"Traceback" not in err
    assert process(*OWN).stdout.decode() == "Noted, and finished.\n"


def test_a_turn_that_a_living_process_answers_is_waited_for(stalled, started):
    second = started(*OWN)
    for line in iter(second.stderr.readline, b""):
        if b"Another process is answering it" in line:
            break
    else:
        pytest.fail("it did not wait")
    stalled.kill()
    stalled.wait(timeout=20)
    Path("go").touch()

    out, _ = second.communicate(timeout=30)
    assert out == b"Noted, and finished.\n"


def wait_until(there, seconds: float = 20) -> None:
    until = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)
