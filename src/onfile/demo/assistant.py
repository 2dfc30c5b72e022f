"""The demo's assistant: what answers in `onfile chat` and on the chat page unless you bring your own."""

from __future__ import annotations

import hashlib

from ..memory import Memory
from ..runs.assistant import Assistant
from ..runs.messages import AnyModel
from ..runs.tools import ToolContext, action_tool
from .script import scripted_model

BASE_PROMPT = "You are a helpful assistant. Be brief. Answer from what is on file where it answers the question."
SCRIPTED = (
    "No model was named, so a script answers: it matches words, notes facts and books in play. "
    "For a language model name one: --model openai:gpt-5, with its key in the environment."
)


@action_tool
def book(what: str, context: ToolContext) -> str:
    """Book a pick-up with the demo's invented carrier; in play only."""
    # The same for a call that is repeated after a crash, as a real carrier's idempotency key would be.
    named = hashlib.sha256(f"{len(context.run_id)}:{context.run_id}{context.tool_call_id}".encode()).hexdigest()
    return f"Booked in play: {what}. Reference DEMO-{named[:6].upper()}; nobody was called."


def demo_assistant(
    memory: Memory, *, model: AnyModel | None = None, books: bool = False, seconds_a_word: float = 0.0
) -> Assistant:
    """Answer an assistant on `memory`.

    Args:
        memory: What it may read and record in.
        model: A model of Pydantic AI or its name; without one the demo's script answers.
        books: Let it book in play, as the script always may.
        seconds_a_word: How slowly the script hands over its words.
    """
    answering = scripted_model(seconds_a_word=seconds_a_word) if model is None else model
    tools = [book] if books or model is None else []
    return Assistant(model=answering, base_prompt=BASE_PROMPT, memory=memory, tools=tools, asks=True)
