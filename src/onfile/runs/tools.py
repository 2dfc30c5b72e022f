"""Tools: plain typed Python functions, and the one that asks the user."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model
from pydantic_core import to_jsonable_python

from ..scopes import ScopeContext

ToolKind = Literal["read", "action", "ask", "skill", "memory"]
OFFERED_BY_THE_LOOP = frozenset({"ask", "skill", "remember"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """What a tool may know of the call it carries out; a parameter of this type is never shown to a model."""

    ctx: ScopeContext
    run_id: str
    tool_call_id: str
    """With `run_id`, the same for a call that is repeated after a crash: make effects idempotent by both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A function as a model is offered it."""

    name: str
    kind: Literal["read", "action"]
    """A `read` runs at once, an `action` waits for a person's approval."""
    description: str
    json_schema: Mapping[str, Any]
    function: Callable[..., Any]
    arguments: type[BaseModel]
    takes: str | None = None
    """The parameter that gets the `ToolContext`."""

    async def call(self, arguments: Any, context: ToolContext) -> Any:
        """Check the arguments, call the function and answer its result as JSON values.

        A function that is not async runs in a thread, so that several reads of a step overlap.

        Raises:
            ValueError: The arguments do not fit; the message is for the model.
            Exception: Whatever the function raises.
        """
        try:
            checked = self.arguments.model_validate(arguments)
        except ValidationError as error:
            raise ValueError(_told(error)) from None
        given = {name: getattr(checked, name) for name in self.arguments.model_fields}
        if self.takes is not None:
            given[self.takes] = context
        if inspect.iscoroutinefunction(self.function):
            answer = await self.function(**given)
        else:
            answer = await asyncio.to_thread(self.function, **given)
            if inspect.isawaitable(answer):
                answer = await answer
        return to_jsonable_python(answer)


def read_tool(function: Callable[..., Any]) -> Tool:
    """Make a tool of a function that only looks something up; the model's call runs at once.

    The docstring's first paragraph is the description, annotations make the schema, and
    `Annotated[..., pydantic.Field(description=...)]` describes a parameter.
    """
    return _tool(function, "read")


def action_tool(function: Callable[..., Any]) -> Tool:
    """Make a tool of a function that changes something; every call waits for a person's approval."""
    return _tool(function, "action")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question to the user, and what holds when they skip it."""

    question: str
    default: str


class _Questions(BaseModel):
    model_config = ConfigDict(extra="forbid")

    questions: list[Question]


ASK_DESCRIPTION = "Ask the user one or more questions at once; each with the answer that holds when they skip it."
ASK_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "questions": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {
                    "question": {"type": "string", "minLength": 1},
                    "default": {"type": "string", "description": "The answer if the user skips the question."},
                },
                "required": ["question", "default"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["questions"],
    "additionalProperties": False,
}


def read_questions(arguments: Any) -> Sequence[Question]:
    """Answer the questions that a model asked.

    Raises:
        ValueError: They do not fit; the message is for the model.
    """
    try:
        questions = TypeAdapter(_Questions).validate_python(arguments).questions
    except ValidationError as error:
        raise ValueError(_told(error)) from None
    if not questions:
        msg = "ask needs at least one question"
        raise ValueError(msg)
    return questions


def settle_questions(questions: Sequence[Question], answers: Any) -> list[dict[str, str]]:
    """Put a person's answers beside the questions.

    Args:
        questions: What was asked.
        answers: A list with a string, or None for a skipped one, per question; anything else skips them all.
    """
    given = cast("list[Any]", answers) if isinstance(answers, list) else []
    settled: list[dict[str, str]] = []
    for place, one in enumerate(questions):
        said = given[place] if place < len(given) else None
        answered = isinstance(said, str)
        settled.append(
            {
                "question": one.question,
                "answer": said if isinstance(said, str) else one.default,
                "from": "the user" if answered else "the default: the user skipped it",
            }
        )
    return settled


def _tool(function: Callable[..., Any], kind: Literal["read", "action"]) -> Tool:
    hints = get_type_hints(function, include_extras=True)
    takes: str | None = None
    fields: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            msg = f"the tool {function.__name__} takes *{name}; give every parameter a name and a type"
            raise TypeError(msg)
        if hints.get(name) is ToolContext:
            takes = name
            continue
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        fields[name] = (hints.get(name, Any), default)
    arguments = create_model(f"{function.__name__}_arguments", __config__=ConfigDict(extra="forbid"), **fields)
    schema = arguments.model_json_schema()
    schema.pop("title", None)
    paragraph = (inspect.getdoc(function) or "").partition("\n\n")[0]
    return Tool(
        name=function.__name__,
        kind=kind,
        description=" ".join(paragraph.split()),
        json_schema=schema,
        function=function,
        arguments=arguments,
        takes=takes,
    )


def _told(error: ValidationError) -> str:
    problems = [f"{'.'.join(str(part) for part in one['loc']) or 'arguments'}: {one['msg']}" for one in error.errors()]
    return "The arguments do not fit. " + "; ".join(problems)
