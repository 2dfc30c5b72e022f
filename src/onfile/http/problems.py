"""Refusals over HTTP as problem details (RFC 9457): a status, words, and nothing of the request."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel, Field
from starlette.responses import Response

PROBLEM_JSON = "application/problem+json"
NO_STORE = {"Cache-Control": "no-store"}
"""What is on file about a person belongs in no cache."""


class Problem(BaseModel):
    """Why a request was not answered."""

    type: str = Field(default="about:blank", description="The status says it all, so there is no page about it.")
    title: str
    status: int
    detail: str = Field(description="The reason, in words for a person.")


def problem(status: int, detail: str) -> Response:
    """Answer a refusal; the same status and detail are the same bytes, whatever was asked."""
    body = Problem(title=HTTPStatus(status).phrase, status=status, detail=detail).model_dump()
    content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
    return Response(content, status_code=status, media_type=PROBLEM_JSON, headers=NO_STORE)


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
