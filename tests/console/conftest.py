"""A real browser, and a real `onfile serve --demo` for it to look at."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from tests.conftest import missing
from tests.console.browsers import FLAGS, ours, wait_for


@pytest.fixture(scope="module")
def browser(program) -> Iterator:
    if find_spec("playwright") is None or find_spec("axe_playwright_python") is None:
        missing("playwright with axe-playwright-python")
    chromium = program("chromium", "chromium-browser", "google-chrome")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def address(browser, tmp_path_factory) -> Iterator[str]:
    """The address that a fresh `onfile serve --demo` prints."""
    home = tmp_path_factory.mktemp("home")
    command = [sys.executable, "-m", "onfile.cli", "serve", "--demo", "--port", "0"]
    environment = {**os.environ, "HOME": str(home), "XDG_DATA_HOME": str(home)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as serving:
        try:
            printed = serving.stdout.readline().strip()
            wait_for(printed.partition("?")[0])
            yield printed
        finally:
            serving.send_signal(signal.SIGINT)
            serving.wait(timeout=20)


@pytest.fixture
def opened(browser, address):
    """Open pages in a browser of one's own, signed in; what the browser complained of fails the test."""
    contexts, complaints = [], []

    def open_page(path: str = "/", *, signed_in: bool = True, **settings):
        context = browser.new_context(base_url=address.partition("/?")[0], **settings)
        context.set_default_timeout(8_000)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: complaints.append(request.url) if not ours(request.url, address) else None)
        if signed_in:
            page.goto(address)
        page.goto(path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [complaint for complaint in complaints if "401" not in complaint] == []
