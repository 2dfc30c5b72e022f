"""The code in the two pages about HTTP runs as it is printed."""

import re
from pathlib import Path

import httpx
import pytest

DOCS = Path(__file__).parents[2] / "docs"


def printed(page: str) -> dict:
    code = re.search(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL).group(1)
    assert len([line for line in code.splitlines() if line]) <= 12
    namespace = {"__name__": "printed"}
    exec(compile(code, page, "exec"), namespace)  # noqa: S102  # our own documentation
    return namespace


async def test_twelve_lines_mount_the_routes() -> None:
    app = printed("http.md")["app"]
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://host") as http:
        assert (await http.get("/agent/memories")).status_code == 401
        answer = await http.get("/agent/memories", headers={"x-person": "ana"})
    assert (answer.status_code, answer.json()) == (200, [])


async def test_the_console_runs_in_a_process_of_ones_own() -> None:
    app = printed("console.md")["app"]
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost:8377") as http:
        opened = await http.get("/?token=a+long+random+text", follow_redirects=True)
        api = await http.get(
            "/agent/memories?actor=ana&tenant=acme", headers={"authorization": "Bearer a long random text"}
        )
    assert "What is on file about you" in opened.text
    assert api.json() == []


@pytest.mark.parametrize("page", ["http.md", "console.md"])
def test_every_link_of_the_pages_leads_somewhere(page) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", (DOCS / page).read_text(encoding="utf-8")):
        assert (DOCS / target).exists(), target
