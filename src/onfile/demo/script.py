"""The demo's scripted model: rules and no language model, but it reads its prompt and calls the tools it is offered."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from ..recall.tokens import tokenise
from .dictation import dictated
from .reading import matching, read_facts, read_skills

ABILITIES = (
    "I am a script, not a language model. I can note a fact (“remember that my units are kilometres”, “call me Ann”), "
    "answer from what is on file (“what do you know about me?”, “which units do I use?”), tell what you said before "
    "in this conversation"
)
BOOKING = ", and book a pick-up, which waits for your approval (“book 12 pallets to Bremen”)"
NOTHING_ON_FILE = "Nothing is on file about you in this turn."
UNKNOWN = "Nothing on file that I was given has these words, and I can only match words. "
WHAT_TO_BOOK = "What shall I book, and where to?"
NOTHING = "nothing"

_BOOK = re.compile(r"(?:please |can you |could you )*(?:book|ship)\b(?P<what>.*)", re.IGNORECASE | re.DOTALL)
_EVERYTHING = re.compile(
    r"what do you (?:know|remember)(?: about me)?|what(?:'s| is) on file|what have you (?:noted|remembered)|who am i",
    re.IGNORECASE,
)
_BEFORE = re.compile(r"what did i (?:just )?(?:say|tell|ask)|what have i said", re.IGNORECASE)
_HELP = re.compile(r"\s*(?:help|hi|hello|hey|hallo|what can you do|who are you)\b[^a-z]*", re.IGNORECASE)


def scripted_model(*, seconds_a_word: float = 0.0) -> FunctionModel:
    """Answer the script as a model of Pydantic AI, which needs no key and no network.

    Args:
        seconds_a_word: How slowly it hands over its words where somebody watches them come.
    """

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[_next(messages, info)])

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        part = _next(messages, info)
        if isinstance(part, ToolCallPart):
            arguments = part.args_as_json_str()
            yield {0: DeltaToolCall(name=part.tool_name, json_args=arguments, tool_call_id=part.tool_call_id)}
            return
        for word in re.findall(r"\S+\s*|\s+", part.content):
            yield word
            await asyncio.sleep(seconds_a_word)

    return FunctionModel(answer, stream_function=stream, model_name="onfile-demo-script")


def _next(messages: Sequence[ModelMessage], info: AgentInfo) -> TextPart | ToolCallPart:
    """Answer what the script does next: a call of a tool, or words."""
    said = _said(messages)
    results = _results_since(messages)
    offered = {tool.name for tool in info.function_tools}
    prompt = info.instructions or ""
    call: tuple[str, dict[str, Any]] | None
    if results:
        call, words = _after(results[-1], offered)
    else:
        call, words = _first(said, prompt, offered)
    if call is None:
        return TextPart(words)
    # Numbered through the conversation, so that no two calls of it share an id.
    calls = sum(isinstance(part, ToolCallPart) for one in messages for part in one.parts)
    return ToolCallPart(call[0], call[1], tool_call_id=f"call_{calls + 1}")


def _first(said: Sequence[str], prompt: str, offered: set[str]) -> tuple[tuple[str, dict[str, Any]] | None, str]:
    """Answer what the user's last message asks for: a call, or words."""
    asked, facts = said[-1].strip(), read_facts(prompt)
    if (found := _BOOK.fullmatch(asked)) and "book" in offered:
        what = found["what"].strip(" .!?\n")
        if what:
            return ("book", {"what": what}), ""
        if "ask" in offered:
            return ("ask", {"questions": [{"question": WHAT_TO_BOOK, "default": NOTHING}]}), ""
    if fact := dictated(asked):
        if "remember" in offered:
            return ("remember", fact), ""
        return None, "I cannot note that: in this turn I am not offered `remember`."
    if _EVERYTHING.search(asked):
        lines = [f"- {one.said}" for one in facts]
        return None, "\n".join(["This is what I was given about you:", *lines]) if lines else NOTHING_ON_FILE
    if _BEFORE.search(asked):
        earlier = [f"- {one}" for one in said[:-1]]
        return None, "\n".join(["In this conversation you said:", *earlier]) if earlier else "Nothing before this."
    if (name := _skill(asked, prompt)) and "skill" in offered:
        return ("skill", {"name": name}), ""
    if not _HELP.fullmatch(asked) and (found := matching(facts, asked)):
        return None, "\n".join(one.said[0].upper() + one.said[1:] + "." for one in found)
    abilities = ABILITIES + (BOOKING if "book" in offered else "") + "."
    return None, abilities if _HELP.fullmatch(asked) else UNKNOWN + abilities


def _after(result: ToolReturnPart, offered: set[str]) -> tuple[tuple[str, dict[str, Any]] | None, str]:
    """Answer what follows the result of a call."""
    content = str(result.content)
    if result.outcome == "denied":
        return None, f"Not done. {content}"
    if result.tool_name == "ask" and "book" in offered:
        answer = _answer(content).strip()
        if answer.casefold() not in {"", NOTHING}:
            return ("book", {"what": answer}), ""
        return None, "Then nothing is booked."
    if result.tool_name == "skill":
        return None, f"The procedure on offer says:\n{content}"
    return None, content


def _answer(content: str) -> str:
    """Read the first answer that `ask` brought back."""
    try:
        return str(cast("list[dict[str, Any]]", json.loads(content))[0]["answer"])
    except (ValueError, LookupError, TypeError):
        return ""


def _said(messages: Sequence[ModelMessage]) -> list[str]:
    """Answer what the user said, oldest first."""
    parts = [part for one in messages if isinstance(one, ModelRequest) for part in one.parts]
    return [str(part.content) for part in parts if part.part_kind == "user-prompt"]


def _results_since(messages: Sequence[ModelMessage]) -> list[ToolReturnPart]:
    """Answer the results that came after the user's last message."""
    parts = [part for one in messages for part in one.parts]
    last = max(place for place, part in enumerate(parts) if part.part_kind == "user-prompt")
    return [part for part in parts[last:] if isinstance(part, ToolReturnPart)]


def _skill(asked: str, prompt: str) -> str | None:
    """Answer the skill whose name the user's words hold."""
    words = set(tokenise(asked))
    return next((name for name, _ in read_skills(prompt) if (terms := set(tokenise(name))) and terms <= words), None)
