"""What is said and asked in `onfile chat`, line by line."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..console.threads import open_turn
from ..console.watching import TurnEvent
from ..console.words import call_words, failure_words
from ..ids import new_id
from ..runs.journal import Run
from ..runs.tools import read_questions
from ..text import shown_scope, shown_text
from .failures import Failure
from .output import console

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine

    from ..console.conversations import Conversations
    from ..records import Actor
    from ..runs.pending import PendingCall
    from ..runs.runner import TurnResult

HELP = """\
/memory         what is on file about you
/new            begin a new conversation; what is on file goes with you
/threads        your conversations
/thread ID      go on with another one
/retry          go on with a turn that failed
/quit           leave, as Ctrl-D does
Anything else is a message."""
PROMPT = "you> "
_YES = frozenset({"y", "yes", "approve", "ok"})
_NO = frozenset({"n", "no", "reject"})
# What would move a terminal's cursor or change its title: a model's words and facts are text.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Screen:
    """The terminal: the assistant's words on one stream, what is said about them on the other."""

    def __init__(self) -> None:
        self._about = console(errors=True)
        self._inside_line = False
        self.typed_at = sys.stdin.isatty() and sys.stdout.isatty()
        if self.typed_at:
            with contextlib.suppress(ImportError):  # Windows has none
                import_module("readline")  # gives `input` its line editing

    def show(self, event: TurnEvent) -> None:
        """Show one thing that happened in a turn."""
        if event.kind == "text":
            text = _CONTROLS.sub("", event.text)
            sys.stdout.write(text)
            sys.stdout.flush()
            if text:
                self._inside_line = not text.endswith("\n")
        elif event.kind == "result":
            words = call_words(event.tool, event.arguments, outcome=event.outcome, result=event.text)
            self.note(f"  · {words}", dim=True)

    def end_line(self) -> None:
        """End the line that the assistant's words left open."""
        if self._inside_line:
            sys.stdout.write("\n")
            sys.stdout.flush()
        self._inside_line = False

    def note(self, words: str, *, dim: bool = False) -> None:
        """Say something about the conversation."""
        self.end_line()
        self._about.print(_CONTROLS.sub("", words), style="dim" if dim else None, soft_wrap=True)

    def ask(self, prompt: str) -> str | None:
        """Read one line, or None when there are no more."""
        self.end_line()
        if self.typed_at:
            try:
                return input(prompt)
            except EOFError:
                sys.stdout.write("\n")
                return None
        if prompt != PROMPT or sys.stdin.isatty():
            self.note(prompt.rstrip())
        line = sys.stdin.readline()
        return line.rstrip("\r\n") if line else None


class Talk:
    """One person's conversation, until they leave."""

    def __init__(self, conversations: Conversations, loop: asyncio.Runner, *, actor: Actor, thread: str | None) -> None:
        self._conversations = conversations
        self._loop = loop
        self._actor = actor
        self._given = thread
        self._thread = thread or new_id("thr_")
        self._screen = Screen()
        self._said_something = False

    def go_on(self) -> None:
        """Greet, finish what was left open, and answer until there is nothing more to answer.

        Raises:
            Failure: The thread is somebody else's.
        """
        self._runs()  # before anything is said: it may be somebody else's
        who = f"{self._actor.id} of {self._actor.tenant_ref}" if self._actor.tenant_ref else self._actor.id
        self._screen.note(f"{who}, conversation {self._thread}; /help lists what you can type.", dim=True)
        if self._conversations.notice:
            self._screen.note(self._conversations.notice)
        try:
            left = self._finish_open()
            while not left and (line := self._read()) is not None:
                left = self._answer(line.strip())
        except KeyboardInterrupt:
            self._screen.end_line()
        if self._said_something or self._given:
            self._screen.note(f"To go on with this conversation, add: --thread {shlex.quote(self._thread)}", dim=True)

    def _answer(self, line: str) -> bool:
        """Answer one line; True to leave."""
        command, _, rest = line.partition(" ")
        if not line:
            return False
        if not command.startswith("/") or command.count("/") > 1:
            run_id = new_id("run_")
            self._said_something = True
            work = self._conversations.say(
                line, actor=self._actor, thread_id=self._thread, run_id=run_id, tell=self._screen.show
            )
            return self._turn(run_id, work)
        if command in ("/quit", "/exit"):
            return True
        if command == "/new":
            self._thread = new_id("thr_")
            self._screen.note(f"A new conversation: {self._thread}")
        elif command == "/thread" and rest.strip():
            return self._switch(rest.strip())
        elif command == "/memory":
            self._show_memory()
        elif command == "/threads":
            self._show_threads()
        elif command == "/retry":
            return self._finish_open(nothing="There is no turn to go on with.")
        else:
            self._screen.note(HELP)
        return False

    def _turn(self, run_id: str, work: Coroutine[Any, Any, TurnResult]) -> bool:
        """Carry a turn to its end, asking the person what it asks; True when they left it open."""
        while True:
            try:
                result = self._loop.run(work)
            except Exception as error:  # whatever a model raises: the turn is kept
                if os.environ.get("ONFILE_DEBUG"):
                    raise
                self._screen.note(f"{failure_words(error)}; the turn is kept, and /retry goes on with it.")
                break
            if result.pending is None:
                if result.status not in ("done", "waiting"):
                    self._screen.note(f"Another process has this turn now; it is {result.status}.")
                elif result.stopped == "max_steps":
                    self._screen.note("It stopped here: the turn used up its steps.")
                break
            if not self._decide(run_id, result.pending):
                self._screen.note("It waits, for as long as it takes, and nothing is done meanwhile.")
                return True
            work = self._conversations.carry_on(run_id, tell=self._screen.show)
        self._screen.note(f"onfile runs show {run_id}", dim=True)
        return False

    def _decide(self, run_id: str, pending: PendingCall) -> bool:
        """Ask the person what a turn waits for; False when they gave no answer."""
        runner = self._conversations.runner
        if pending.kind == "answer":
            answers: list[str | None] = []
            for question in read_questions(pending.arguments):
                said = self._screen.ask(f"  {_plain(question.question)} [{_plain(question.default)}] ")
                if said is None:
                    return False
                answers.append(said.strip() or None)
            first = self._loop.run(runner.answer(run_id, pending.tool_call_id, answers))
        else:
            self._screen.note(f"  It wants to do this: {call_words(pending.tool, pending.arguments)}")
            verdict = self._verdict()
            if verdict is None:
                return False
            approved, reason = verdict
            first = self._loop.run(runner.decide(run_id, pending.tool_call_id, approved=approved, reason=reason))
        if not first:
            self._screen.note("That was answered before; the first answer holds.")
        return True

    def _verdict(self) -> tuple[bool, str] | None:
        while (said := self._screen.ask("  Approve? y, or n and why: ")) is not None:
            word, _, reason = said.strip().partition(" ")
            if word.casefold().strip(",.:") in _YES | _NO:
                return word.casefold().strip(",.:") in _YES, reason.strip()
        return None

    def _finish_open(self, *, nothing: str = "") -> bool:
        """Finish the turn that a process left open in this thread; True when the person left it open."""
        if (run := open_turn(self._runs())) is None:
            if nothing:
                self._screen.note(nothing)
            return False
        self._screen.note(f"The last turn was not finished; going on with it. You had said: {_plain(run.text)}")
        work = self._conversations.take_over(
            run.id,
            tell=self._screen.show,
            replay=True,
            held=lambda: self._screen.note("Another process is answering it; waiting for that one."),
        )
        return self._turn(run.id, work)

    def _switch(self, thread: str) -> bool:
        before, self._thread = self._thread, thread
        try:
            self._runs()
        except Failure as failure:
            self._thread = before
            self._screen.note(f"{failure}.")
            return False
        self._screen.note(f"Now in {thread}.")
        return self._finish_open()

    def _show_memory(self) -> None:
        memory = self._conversations.assistant.memory
        ctx = self._conversations.context(self._actor, self._thread)
        entries = self._loop.run(memory.read_back(ctx)) if memory is not None else ()
        for entry in entries:
            author = "a person stated it" if entry.origin.author == "human" else "the assistant's note"
            pinned = ", pinned" if entry.pinned else ""
            place, key, text = shown_scope(entry.scope), shown_text(entry.key), shown_text(entry.text)
            self._screen.note(f"  [{place}] {key}: {text} ({author}{pinned})")
            for beaten in entry.overrides:
                self._screen.note(f"      instead of [{shown_scope(beaten.scope)}] {shown_text(beaten.text)}")
        if not entries:
            self._screen.note("  Nothing is on file.")

    def _show_threads(self) -> None:
        for thread in self._loop.run(self._conversations.threads.of(self._actor)):
            turns = f"{thread.turns} turn" + ("" if thread.turns == 1 else "s")
            self._screen.note(f"  {thread.id}  {thread.last:%Y-%m-%d %H:%M}  {turns}  {_plain(thread.title)[:60]}")

    def _runs(self) -> list[Run]:
        runs = self._loop.run(self._conversations.threads.runs(self._thread, self._actor))
        if runs is None:
            msg = f"there is no conversation {shown_text(self._thread)} of this actor's; /threads lists those there are"
            raise Failure(msg)
        return list(runs)

    def _read(self) -> str | None:
        return self._screen.ask(PROMPT)


def _plain(text: str) -> str:
    return shown_text(" ".join(text.split()))
