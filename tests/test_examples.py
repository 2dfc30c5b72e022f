"""What the README and the examples show is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from httpx import ASGITransport, AsyncClient

from onfile import Actor, ScopeContext

README = (Path(__file__).parent.parent / "README.md").read_text("utf-8")
EXAMPLES = Path(__file__).parent.parent / "examples"


def shown(language: str) -> list[str]:
    """The README's blocks of one language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def printed_by(program: Path, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, str(program)], cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


def test_the_readme_s_ten_lines_print_the_block_that_it_pictures(tmp_path: Path):
    # given exactly what a reader would copy
    program = tmp_path / "copied.py"
    program.write_text(shown("python")[0], "utf-8")

    # when they run it, then they see the picture
    assert printed_by(program, tmp_path) == shown("text")[0]


def test_the_readme_s_ten_lines_are_the_quickstart():
    assert shown("python")[0] == (EXAMPLES / "quickstart.py").read_text("utf-8")


def test_running_the_ten_lines_again_changes_nothing(tmp_path: Path):
    first = printed_by(EXAMPLES / "quickstart.py", tmp_path)

    assert printed_by(EXAMPLES / "quickstart.py", tmp_path) == first


def test_the_readme_mounts_the_router_as_the_example_does():
    example = (EXAMPLES / "fastapi_app.py").read_text("utf-8")

    for line in shown("python")[1].splitlines():
        assert line in example


async def test_the_fastapi_example_lets_a_person_read_and_delete_what_is_theirs_and_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # given the example as it stands, on a database of its own, with a fact of Ana's
    monkeypatch.chdir(tmp_path)
    spec = spec_from_file_location("fastapi_app", EXAMPLES / "fastapi_app.py")
    assert spec and spec.loader
    example = module_from_spec(spec)
    spec.loader.exec_module(example)
    ana, bo = {"X-Session": "session-of-ana"}, {"X-Session": "session-of-bo"}

    host = ASGITransport(app=example.app)
    async with example.lifespan(example.app), AsyncClient(transport=host, base_url="http://host") as client:
        ctx = ScopeContext(actor=Actor(id="ana", tenant_ref="acme"))
        published = await example.memory.publish(scope="actor:ana", key="units", text="kilometres", ctx=ctx)
        assert published.record

        # when nobody is signed in, then the host's own answer comes through
        assert (await client.get("/agent/memories")).status_code == 401

        # and Ana reads what is on file about her, Bo does not
        assert [entry["text"] for entry in (await client.get("/agent/memories", headers=ana)).json()] == ["kilometres"]
        assert (await client.get("/agent/memories", headers=bo)).json() == []

        # and only Ana deletes it
        path = f"/agent/memories/{published.record.id}"
        assert (await client.delete(path, headers=bo)).status_code == 404
        assert (await client.delete(path, headers=ana)).json() == {"forgotten": True}
        assert (await client.get("/agent/memories", headers=ana)).json() == []
