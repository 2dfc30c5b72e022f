"""What a parked run waits for, read from its journal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .journal import Checkpoint, Json, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCall:
    """One tool call that a person is asked about."""

    tool_call_id: str
    kind: Literal["approval", "answer"]
    """`approval` of an action, or an `answer` to the model's questions."""
    tool: str
    arguments: Json


def pending_call(run: Run, checkpoints: Sequence[Checkpoint]) -> PendingCall | None:
    """Answer what a run waits for, or None for one that does not wait."""
    if run.status != "waiting" or run.waits_for is None:
        return None
    kind, _, call = run.waits_for.partition(":")
    name = f"persist:toolcall:{call}"
    kept = next((checkpoint.value for checkpoint in checkpoints if checkpoint.name == name), None)
    if kept is None:
        return None
    return PendingCall(
        tool_call_id=call,
        kind="approval" if kind == "approval" else "answer",
        tool=kept["tool"],
        arguments=kept["args"],
    )
