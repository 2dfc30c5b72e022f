"""Refusals over HTTP as problem details (RFC 9457): a status, words, and nothing of the request."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from pydantic import BaseModel, Field
from starlette.responses import Response

from ..wire import answers
from ..wire.answers import PROBLEM_JSON, Answer


class Problem(BaseModel):
    """Why a request was not answered."""

    type: str = Field(default="about:blank", description="The status says it all, so there is no page about it.")
    title: str
    status: int
    detail: str = Field(description="The reason, in words for a person.")


def problem(status: int, detail: str) -> Response:
    """Answer a refusal; the same status and detail are the same bytes, whatever was asked."""
    return response(answers.problem(status, detail))


def response(answer: Answer) -> Response:
    """Answer as Starlette has it."""
    return Response(answer.body, status_code=answer.status, media_type=answer.media_type, headers=answer.headers)


def documented(**details: str) -> dict[int | str, dict[str, Any]]:
    """Describe refusals for OpenAPI, as `documented(not_found="…")` with what a person is told."""
    return {
        int(status): {
            "description": detail,
            "content": {
                PROBLEM_JSON: {
                    "schema": Problem.model_json_schema(mode="serialization"),
                    "example": Problem(title=status.phrase, status=status, detail=detail).model_dump(),
                }
            },
        }
        for status, detail in ((HTTPStatus[name.upper()], detail) for name, detail in details.items())
    }
