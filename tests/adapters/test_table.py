"""The table of docs/adapters.md says what the suite tries, and the suite tries what the table says."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from .behaviour import PROMISES, AdapterBehaviour

PAGE = (Path(__file__).parent.parent.parent / "docs" / "adapters.md").read_text("utf-8")
TABLE = [[cell.strip() for cell in line[1:-1].split("|")] for line in PAGE.splitlines() if line.startswith("|")]
COLUMNS = {
    "Pydantic AI": ("pydantic_ai", "TestPydanticAI"),
    "LangChain, LangGraph": ("langchain", "TestLangChain"),
    "OpenAI Agents": ("openai_agents", "TestOpenAIAgents"),
    "Microsoft Agent Framework": ("agent_framework", "TestAgentFramework"),
    "plain OpenAI, Anthropic": ("plain_clients", "TestAnthropic"),
    "MCP": ("mcp", "TestMCP"),
}


def suite_of(framework: str) -> tuple[ModuleType, type[AdapterBehaviour]]:
    """A framework's tests; skips, visibly, where it is not installed."""
    name, suite = COLUMNS[framework]
    module = import_module(f"tests.adapters.test_{name}")
    return module, getattr(module, suite)


def test_the_table_has_a_column_for_every_framework_and_a_row_for_every_promise():
    assert TABLE[0] == ["", *COLUMNS]
    assert [row[0] for row in TABLE[2:]] == ["install", *PROMISES.values()]


@pytest.mark.parametrize("framework", COLUMNS)
def test_a_column_says_what_the_suite_says_of_the_framework(framework: str):
    _, suite = suite_of(framework)
    column = [row[list(COLUMNS).index(framework) + 1] for row in TABLE]

    assert column[0] == suite.framework
    assert column[2] == (f"`onfile[{suite.install}]`" if suite.install else "`onfile`")
    assert dict(zip(PROMISES, column[3:], strict=True)) == suite.seam


@pytest.mark.parametrize("framework", COLUMNS)
def test_what_a_column_promises_is_tried_on_the_framework(framework: str):
    module, suite = suite_of(framework)
    tests = [*vars(module).values(), *(getattr(suite, name) for name in dir(suite) if name.startswith("test_"))]
    tried = {promise for test in tests for promise in getattr(test, "promises", ())}

    assert {promise for promise, told in suite.seam.items() if not told.startswith("no")} <= tried
    assert all(told.startswith(("yes", "no")) for told in suite.seam.values())
