"""The pages in a real browser, against a real `onfile serve --demo`: looked at, read aloud by axe, and used."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest

from tests.conftest import missing

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
ANA = "actor=ana&tenant=acme"


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


def ours(url: str, address: str) -> bool:
    return url.startswith((address.partition("?")[0], "data:"))


def violations(page) -> list[str]:
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [f"{problem['id']}: {node['html'][:120]}" for problem in found for node in problem["nodes"]]


LOOKS = {
    "light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 800}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 800}},
    "phone": {"color_scheme": "light", "viewport": {"width": 360, "height": 740}},
}


@pytest.mark.parametrize("look", LOOKS)
def test_no_page_has_a_fault_that_axe_finds_or_scrolls_sideways(opened, look) -> None:
    def check() -> None:
        assert violations(page) == [], page.url
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), page.url

    page = opened("/", signed_in=False, **LOOKS[look])
    check()
    page = opened(f"/?{ANA}", **LOOKS[look])
    check()
    page.locator(".act .delete").first.click()
    page.locator("#confirm").wait_for()
    page.get_by_text("Someone else").click()
    check()
    page.goto(page.locator(".act .delete").first.get_attribute("href"))
    check()
    page.goto(f"/turn?{ANA}")
    page.get_by_label("Message").fill("how do we label a pallet?")
    page.get_by_role("button", name="Take the turn").click()
    page.get_by_label("Key").fill("answer-length")
    page.get_by_label("Fact").fill("as long as you like")
    page.get_by_role("button", name="Record").click()
    page.get_by_text("Not recorded.").wait_for()
    check()
    page.goto("/?actor=%E8%AB%8B" + "x" * 200)
    check()


@pytest.mark.parametrize("scripts", [True, False])
def test_a_fact_is_recorded_read_and_deleted_with_javascript_and_without(opened, scripts) -> None:
    key = f"forklift licence {scripts}"
    page = opened(f"/turn?{ANA}", java_script_enabled=scripts)
    page.get_by_label("Message").fill("who may drive the forklift?")
    page.get_by_role("button", name="Take the turn").click()
    page.get_by_label("Key").fill(key)
    page.get_by_label("Fact").fill("valid until March")
    page.get_by_role("button", name="Record").click()
    page.get_by_text(f"Recorded [actor:ana] {key}: valid until March.").wait_for()
    assert re.search(r"/turn\?actor=ana&tenant=acme&run=run_\w+", page.url)
    assert key not in page.locator("pre").inner_text()

    page.get_by_role("link", name="On file", exact=True).click()
    entry = page.get_by_role("listitem").filter(has_text=key)
    assert "concluded by the assistant" in entry.inner_text()
    entry.get_by_role("link", name=f"Delete {key}").click()
    page.get_by_role("link", name="Keep it").click()
    page.get_by_role("link", name=f"Delete {key}").click()
    page.get_by_role("button", name="Delete for good").click()
    page.get_by_text("Deleted. It is no longer on file.").wait_for()
    assert page.get_by_role("listitem").filter(has_text=key).count() == 0


def test_the_keyboard_alone_is_enough_and_one_always_sees_where_one_is(opened) -> None:
    page = opened(f"/?{ANA}")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    for _ in range(12):
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", page.evaluate("document.activeElement.outerHTML")
        if "Delete" in (page.evaluate("document.activeElement.textContent") or ""):
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.locator("#confirm").wait_for()
    assert page.evaluate("document.activeElement.id") == "confirm", "what was asked for is where one is"
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Keep it"
    page.keyboard.press("Enter")
    page.locator("#confirm").wait_for(state="detached")


def test_another_actor_is_chosen_from_the_list_or_by_name(opened) -> None:
    page = opened("/")
    page.get_by_label("Actor", exact=True).select_option(label="mei, tallis")
    page.get_by_role("button", name="Show").first.click()
    page.get_by_text("横浜支店の経理部に送る").wait_for()
    page.get_by_text("Someone else").click()
    page.get_by_label("Actor’s id").fill("дмитрий a:b/c")
    page.keyboard.press("Enter")
    page.get_by_text("answer in the language of the question").wait_for()
    assert page.get_by_label("Actor", exact=True).locator("option:checked").inner_text() == "дмитрий a:b/c"


def test_on_paper_there_are_the_facts_and_nothing_to_click(opened) -> None:
    page = opened(f"/?{ANA}")
    page.emulate_media(media="print")
    assert page.get_by_text("for Halden Paper I hold the slot until 17:00").is_visible()
    assert not page.get_by_role("link", name="Delete").first.is_visible()
    assert not page.get_by_label("Actor", exact=True).is_visible()
