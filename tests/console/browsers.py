"""How the pages are looked at: which browsers, how big, and what is wrong with what they show."""

from __future__ import annotations

import time
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
LOOKS = {
    "light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 800}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 800}},
    "phone": {"color_scheme": "light", "viewport": {"width": 360, "height": 740}},
}


def wait_for(url: str) -> None:
    for _ in range(200):
        try:
            urlopen(url, timeout=5)  # noqa: S310  # the address that our own process printed
        except HTTPError as answer:
            answer.close()
            return
        except URLError:
            time.sleep(0.05)
    pytest.fail("the server did not start")


def ours(url: str, address: str) -> bool:
    return url.startswith((address.partition("?")[0], "data:"))


def violations(page: Any) -> list[str]:
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [f"{problem['id']}: {node['html'][:120]}" for problem in found for node in problem["nodes"]]
