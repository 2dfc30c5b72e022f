"""Who answers in `onfile chat` and on the chat page: the model that was named, or the demo's script."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from .failures import Failure

if TYPE_CHECKING:
    from pydantic_ai.models import Model

ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        help=(
            "Which model answers, as Pydantic AI names it; its key is taken from the environment. Without it the "
            "demo's script answers, which matches words. Example: --model openai:gpt-5"
        ),
    ),
]


SECONDS_A_WORD = 0.01
"""How slowly the script's words come where a person watches."""


def can_run_turns() -> bool:
    """Tell whether the packages are there that turns need."""
    return find_spec("pydantic_ai") is not None


def need_turns() -> None:
    """Raise a sentence where turns cannot be run."""
    if not can_run_turns():
        msg = "a conversation needs a few packages more: pip install 'onfile[cli,runs]'"
        raise Failure(msg)


def model_named(name: str | None) -> Model | None:
    """Answer a model that can be asked, or None for the demo's script.

    Raises:
        Failure: There is no such model, or its client or its key is missing.
    """
    if name is None:
        return None
    need_turns()
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import infer_model

    provider = name.partition(":")[0]
    try:
        return infer_model(name)
    except ImportError:
        msg = f"{name} needs its provider's client: pip install 'pydantic-ai-slim[{provider}]'"
    except UserError as error:
        # The first sentence of theirs names the variable that is missing; none of it holds a key.
        said = str(error).partition(" or pass it via ")[0].partition(". ")[0].replace("`", "")
        msg = (
            f"{name} has no key: {said[0].lower()}{said[1:]}"
            if said.startswith("Set ")
            else f"{name} cannot be used: {said}; write it as Pydantic AI does, such as openai:gpt-5"
        )
    except ValueError:
        msg = f"{name} is no model that Pydantic AI knows; write it as PROVIDER:MODEL, such as openai:gpt-5"
    raise Failure(msg)
