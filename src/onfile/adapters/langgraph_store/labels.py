"""Scopes as labels of a LangGraph namespace."""

from __future__ import annotations

from urllib.parse import quote


def label(scope: str) -> str:
    """Answer a scope as a namespace label: a label may hold no `.`, and some stores match it by pattern."""
    return quote(scope, safe="", errors="surrogatepass").replace(".", "%2E").replace("%", "=")
