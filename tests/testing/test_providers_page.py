"""What docs/providers.md shows is what happens."""

import importlib
import re
import subprocess
import sys

import pytest

from onfile.testing import CLAUSES, check, conform


@pytest.fixture
def copied(project, tmp_path):
    """A folder with every Python file that the page shows, named as the page names it."""
    page = (project / "docs" / "providers.md").read_text("utf-8")
    for name, code in re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        (tmp_path / name).write_text(code, "utf-8")
    return tmp_path


async def test_the_smallest_provider_of_the_page_keeps_what_it_claims(copied, monkeypatch):
    monkeypatch.syspath_prepend(copied)

    report = await conform(importlib.import_module("my_facts").SettingsProvider)

    assert report.ok
    assert report.passed > 0


async def test_the_factory_of_the_page_opens_a_fresh_database(copied, monkeypatch):
    monkeypatch.syspath_prepend(copied)
    factory = importlib.import_module("my_database").fresh_database

    for _ in range(2):
        clause = next(
            clause for clause in CLAUSES if clause.name == "every record at the scopes is listed and no other"
        )
        assert (await check(clause, factory)).status == "passed"


def test_the_tests_of_the_page_run_as_they_stand(copied):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_my_facts.py"],
        cwd=copied,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\d+ passed, \d+ skipped", done.stdout)
