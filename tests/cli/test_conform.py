"""`onfile conform` runs the contract on somebody's provider."""

from __future__ import annotations

from pathlib import Path

import pytest

from onfile.testing import CLAUSES

PROVIDERS = """
from onfile.testing import InMemoryMemoryProvider

class Deaf(InMemoryMemoryProvider):
    async def forget(self, request):
        return False

class Factories:
    recalling = staticmethod(lambda: InMemoryMemoryProvider(recall=True))

nothing = None
"""


@pytest.fixture
def name(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A module in the current directory, of a name that no other test has imported."""
    name = f"providers_{abs(hash(request.node.nodeid))}"
    (tmp_path / f"{name}.py").write_text(PROVIDERS)
    return name


@pytest.fixture(autouse=True)
def own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setattr(sys, "path", [*sys.path])


def test_a_provider_that_keeps_the_contract_passes_with_every_clause_listed(onfile, name: str):
    ended = onfile("conform", f"{name}:Factories.recalling")

    assert ended.code == 0
    assert all(clause.name.split()[0] in ended.out for clause in CLAUSES)
    assert ", 0 failed, " in ended.out.splitlines()[-1]


def test_a_broken_promise_is_named_and_the_exit_code_is_1(onfile, name: str):
    ended = onfile("conform", f"{name}:Deaf", "--json")

    assert ended.code == 1
    assert len(ended.json["results"]) == len(CLAUSES) == sum(ended.json[s] for s in ("passed", "failed", "skipped"))
    broken = [result for result in ended.json["results"] if result["status"] == "failed"]
    assert broken
    assert all(result["reason"] for result in broken)
    assert "forget" in {result["capability"] for result in broken}


@pytest.mark.parametrize(
    ("factory", "reason"),
    [
        ("os:getcwd", "the factory answered a str, which lacks"),
        ("json:loads", "the provider raised TypeError: loads()"),
    ],
)
def test_a_factory_of_something_else_is_told_once_and_not_for_every_clause(onfile, factory: str, reason: str):
    ended = onfile("conform", factory)

    assert (ended.code, ended.out, ended.err.count("\n")) == (1, "", 1)
    assert reason in ended.err


@pytest.mark.parametrize("given", ["nonsense", "no_such_module_here:make", "{name}:missing", "{name}:nothing", ":x"])
def test_a_factory_that_cannot_be_called_is_one_sentence(onfile, name: str, given: str):
    ended = onfile("conform", given.format(name=name))

    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
