"""The pages in a real browser, against a real `onfile serve --demo`: looked at, read aloud by axe, and used."""

import re

import pytest

from tests.console.browsers import LOOKS, violations

ANA = "actor=ana&tenant=acme"


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
