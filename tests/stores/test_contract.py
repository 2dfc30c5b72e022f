"""The provider contract on every database: not only is no clause broken, the same ones are tried on each."""

from __future__ import annotations

from bench.contract import emptied, passed
from onfile.testing import CLAUSES, InMemoryMemoryProvider, conform

ALL = {clause.name for clause in CLAUSES}


async def test_every_clause_of_the_contract_holds_on_every_database(url):
    report = await conform(lambda: emptied(url))

    assert [(result.clause.name, result.reason) for result in report.results if result.status != "passed"] == []
    assert passed(report) == ALL


async def test_the_same_clauses_hold_in_memory():
    report = await conform(lambda: InMemoryMemoryProvider(recall=True))

    assert passed(report) == ALL
