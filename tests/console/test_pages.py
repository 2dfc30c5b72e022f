"""The pages as a browser without JavaScript gets them."""

import html
import json
import re
from contextlib import asynccontextmanager

import httpx
import pytest

from onfile.console.app import create_app
from onfile.console.turns import KEPT_TURNS
from onfile.memory import Memory
from onfile.records import Actor, MemoryOrigin
from onfile.testing import InMemoryMemoryProvider
from tests.facts import fact

ANA = {"actor": "ana", "tenant": "acme"}


KNOWN = (Actor(id="ana", tenant_ref="acme"),)


@asynccontextmanager
async def console(*records, actors=KNOWN, recall=False, provider=None, **settings):
    memory = Memory(provider or InMemoryMemoryProvider(recall=recall, records=records), **settings)
    app = create_app(memory, token=None, actors=actors)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8377", follow_redirects=True) as http:
        yield http


def words(page: httpx.Response) -> str:
    """The text of a page as a person reads it, on one line."""
    main = re.sub(r"(?s)^.*<main", "<main", page.text)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", main)).split())


async def test_the_page_shows_every_fact_with_its_author_origin_date_and_what_it_overrides() -> None:
    origin = MemoryOrigin(author="agent", thread_id="thr_7", run_id="run_9", actor_ref="ana")
    mine = fact("units", "miles", origin=origin, pinned=True)
    theirs = fact("Units", "kilometres", scope="tenant:acme", origin=MemoryOrigin(author="human", actor_ref="dilan"))
    wide = fact("labels", "two sides", scope="global", origin=MemoryOrigin(author="human", actor_ref="ops"))
    async with console(mine, theirs, wide) as http:
        page = await http.get("/", params=ANA)
    text = words(page)
    assert "2 On file" in text.replace("On file 2", "2 On file")
    assert "units miles" in text
    assert "held at tenant:acme kilometres stated by a person" in text
    assert "pinned concluded by the assistant 1 Sep 2026 in thr_7 run run_9" in text
    assert "labels two sides stated by a person by ops" in text
    assert 'datetime="2026-09-01T12:00:00Z"' in page.text


async def test_only_what_is_ones_own_has_a_delete_link_and_the_rest_says_why_not() -> None:
    async with console(fact(id="mem_own"), fact("labels", scope="tenant:acme", id="mem_wide")) as http:
        page = await http.get("/", params=ANA)
    assert "fact=mem_own" in page.text
    assert "fact=mem_wide" not in page.text
    assert "someone who administers [tenant:acme] can delete it" in words(page)


async def test_a_beaten_value_at_ones_own_scope_can_be_deleted_too() -> None:
    def scopes(ctx):
        return ["thread:t1", "actor:ana"]

    records = [fact("units", "miles", id="mem_own"), fact("units", "leagues", scope="thread:t1", id="mem_thread")]
    async with console(*records, scopes=scopes) as http:
        assert "fact=mem_own" in (await http.get("/", params=ANA)).text
        asked = await http.get("/forget", params={**ANA, "fact": "mem_own"})
        assert "miles" in words(asked)
        after = await http.post("/forget", data={**ANA, "fact": "mem_own"})
    assert "Deleted." in words(after)
    assert "leagues" in words(after)
    assert "miles" not in words(after)


async def test_deleting_asks_once_says_what_applies_afterwards_and_then_it_is_gone() -> None:
    records = [fact("units", "miles", id="mem_1"), fact("units", "kilometres", scope="global", author="human")]
    async with console(*records) as http:
        asked = await http.get("/forget", params={**ANA, "fact": "mem_1"})
        assert "There is no way back. held at global kilometres applies instead." in words(asked)
        assert "miles" in words(await http.get("/", params=ANA)), "asking deletes nothing"

        after = await http.post("/forget", data={**ANA, "fact": "mem_1"})
        assert str(after.url) == "http://localhost:8377/?actor=ana&tenant=acme&said=forgotten"
        assert "Deleted. It is no longer on file." in words(after)
        assert "miles" not in words(after)

        again = await http.post("/forget", data={**ANA, "fact": "mem_1"})
        assert "nothing to delete" in words(again)


async def test_a_forged_form_for_a_wider_fact_is_refused_in_words_and_deletes_nothing() -> None:
    async with console(fact("labels", "two sides", scope="tenant:acme", id="mem_wide")) as http:
        asked = await http.get("/forget", params={**ANA, "fact": "mem_wide"})
        assert "This is not yours to delete" in words(asked)
        assert "Delete for good" not in words(asked)
        refused = await http.post("/forget", data={**ANA, "fact": "mem_wide"})
        assert refused.status_code == 403
        assert "someone who administers [tenant:acme] can delete it" in words(refused)
        assert "two sides" in words(await http.get("/", params=ANA))


async def test_a_fact_of_somebody_else_is_as_missing_as_one_that_never_was() -> None:
    async with console(fact(scope="actor:bob", id="mem_bob")) as http:
        for record_id in ("mem_bob", "mem_never"):
            assert "nothing to delete" in words(await http.get("/forget", params={**ANA, "fact": record_id}))
            assert "nothing to delete" in words(await http.post("/forget", data={**ANA, "fact": record_id}))
        assert "units" in words(await http.get("/", params={"actor": "bob"}))


HOSTILE = "</bdi><script>alert(1)</script>\u202e\ud800<img src=x onerror=alert(2)>\" 'x"


async def test_no_text_becomes_markup_wherever_it_stands() -> None:
    scope = f"depot:{HOSTILE}"
    origin = MemoryOrigin(author="agent", thread_id=HOSTILE, run_id=HOSTILE, actor_ref=HOSTILE)
    records = [
        fact(HOSTILE, HOSTILE, id=HOSTILE, origin=origin),
        fact(HOSTILE, HOSTILE, scope=scope, id="mem_2", origin=origin),
        fact("k", HOSTILE, scope=scope, id="mem_3", origin=origin),
    ]
    async with console(*records, scopes=lambda ctx: ["actor:ana", scope]) as http:
        pages = [
            await http.get("/", params={"actor": "ana", "tenant": HOSTILE.replace("\ud800", ""), "said": "<script>"}),
            await http.get("/forget", params={"actor": "ana", "fact": "mem_3"}),
            await http.post("/turn", data={"actor": "ana", "message": HOSTILE.replace("\ud800", "")}),
        ]
    for page in pages:
        assert page.status_code == 200
        assert "alert(1)" in page.text
        assert "<script>" not in page.text
        assert "<img" not in page.text
        assert page.text.count("<script ") == 1


async def test_no_page_holds_a_script_or_a_style_of_its_own() -> None:
    async with console(fact(id="mem_1"), fact("labels", scope="global")) as http:
        for path in ("/?actor=ana", "/turn?actor=ana", "/forget?actor=ana&fact=mem_1", "/nothing"):
            page = await http.get(path)
            assert not re.search(r"<style|style=|<script(?! src=\"/static/)|\son[a-z]+=|javascript:", page.text), path
            assert not re.search(r"(?:href|src|action)=\"(?!/|#|\?)", page.text), path


async def test_whoever_is_chosen_in_the_form_is_in_the_address() -> None:
    async with console(actors=[Actor(id='a"b', tenant_ref="ü/x"), Actor(id="bob")]) as http:
        http.follow_redirects = False
        page = await http.get("/")
        values = [json.loads(html.unescape(value)) for value in re.findall(r'<option value="([^"]*)"', page.text)]
        assert values == [['a"b', "ü/x"], ["bob", None]]
        known = await http.get("/choose", params={"known": json.dumps(values[0]), "page": "turn"})
        assert known.headers["location"] == "/turn?actor=a%22b&tenant=%C3%BC%2Fx"
        typed = await http.get("/choose", params={"known": json.dumps(values[1]), "actor": " kim ", "tenant": ""})
        assert typed.headers["location"] == "/?actor=kim"


@pytest.mark.parametrize("known", ["", "x", "[]", "[1,2]", '["", null]', "null", '["a"]', "[" * 5000, '{"0":"a"}'])
async def test_a_choice_that_is_none_shows_the_first_actor(known) -> None:
    async with console(fact()) as http:
        assert "of acme" in words(await http.get("/choose", params={"known": known, "page": "elsewhere"}))


async def test_without_any_actor_the_pages_ask_whom_to_look_as() -> None:
    async with console(actors=()) as http:
        assert "Nobody is chosen yet" in words(await http.get("/"))
        assert "Nobody is chosen yet" in words(await http.get("/turn"))
        assert "Nobody is chosen yet" in words(await http.post("/turn", data={}))
        assert "Nobody is chosen yet" in words(await http.post("/forget", data={"fact": "x"}))


async def test_an_actor_without_a_fact_is_told_so() -> None:
    async with console(fact(scope="actor:bob")) as http:
        assert "Nothing is on file." in words(await http.get("/", params=ANA))
        turn = await http.post("/turn", data={**ANA, "message": "hello"})
    assert "the prompt has no block at all" in words(turn)
    assert "What the model records" in words(turn)


async def test_a_turn_shows_the_block_byte_for_byte_as_the_model_reads_it() -> None:
    records = [fact("units", "a < b & c"), fact("labels", "two\u2028sides", scope="global", author="human")]
    memory = Memory(InMemoryMemoryProvider(records=records))
    async with console(*records) as http:
        page = await http.post("/turn", data={"actor": "ana", "message": "how?"})
    shown = html.unescape(re.search(r"(?s)<pre[^>]*>(.*?)</pre>", page.text).group(1))
    from onfile.scopes import ScopeContext

    assert shown == (await memory.offer(ScopeContext(actor=Actor(id="ana")), "how?")).block
    assert 'value="how?"' in page.text


async def test_a_turn_tells_for_each_fact_why_it_is_in_or_out() -> None:
    records = [fact("pinned", scope="global", pinned=True), fact("units", minutes=2), fact("labels", minutes=1)]
    async with console(*records, max_memories=2) as http:
        text = words(await http.post("/turn", data={**ANA, "message": "x"}))
    assert "2 facts" in text
    assert "1 left out" in text
    assert "in pinned: in every turn" in text
    assert re.search(r"labels .* out place 3 of 3", text)


async def test_a_turn_with_recall_tells_what_was_not_recalled() -> None:
    records = [fact("pallets", "label two sides"), fact("fiscal-year", "starts in October")]
    async with console(*records, recall=True, max_memories=1) as http:
        text = words(await http.post("/turn", data={**ANA, "message": "how do we label pallets?"}))
    assert "recalled for the message" in text
    assert "in rank 1 for this message" in text
    assert re.search(r"fiscal-year .* out not recalled for this message", text)


def ids_of(page: httpx.Response) -> dict[str, str]:
    form = re.search(r'(?s)<form class="record".*?</form>', page.text).group()
    return {name: html.unescape(value) for name, value in re.findall(r'name="(\w+)" value="([^"]*)"', form)}


async def test_recording_goes_the_models_way_and_the_turns_block_stays() -> None:
    async with console(fact("labels", "two sides", author="human", scope="global")) as http:
        turn = await http.post("/turn", data={**ANA, "message": "x"})
        after = await http.post("/turn/remember", data={**ids_of(turn), "key": "units", "fact": "miles"})
        assert 'remember {"key": "units", "fact": "miles"}' in words(after)
        assert "Recorded [actor:ana] units: miles." in words(after)
        assert "miles" not in re.search(r"(?s)<pre.*</pre>", after.text).group()
        assert "miles" in words(await http.post("/turn", data={**ANA, "message": "x"}))
        on_file = words(await http.get("/", params=ANA))
    assert "units miles concluded by the assistant" in on_file
    assert ids_of(turn)["run"] in on_file, "the origin names the turn"


async def test_sending_the_same_form_twice_records_once() -> None:
    async with console() as http:
        turn = await http.post("/turn", data={**ANA, "message": "x"})
        form = {**ids_of(turn), "key": "units", "fact": "miles"}
        await http.post("/turn/remember", data=form)
        again = await http.post("/turn/remember", data=form)
        assert "nothing changed" in words(again)
        mine = (await http.get("/agent/memories", params=ANA)).json()
    assert [entry["text"] for entry in mine] == ["miles"]


@pytest.mark.parametrize(
    ("key", "text", "said"),
    [
        ("", "miles", "The key is blank"),
        ("units", " ", "The fact is blank"),
        ("units", "x" * 241, "241 characters and the limit is 240"),
        ("k" * 65, "miles", "65 characters and the limit is 64"),
        ("Labels", "one side", "person"),
        ("units", "a\x00b", "NUL"),
    ],
)
async def test_a_refusal_is_shown_in_the_words_that_the_model_gets(key, text, said) -> None:
    async with console(fact("labels", "two sides", author="human")) as http:
        turn = await http.post("/turn", data={**ANA, "message": "x"})
        after = await http.post("/turn/remember", data={**ids_of(turn), "key": key, "fact": text})
    assert after.status_code == 200
    assert "Not recorded." in words(after)
    assert said in words(after)
    assert "said refused" in after.text


async def test_where_the_model_may_not_record_there_is_no_form() -> None:
    class ReadOnly:
        async def list(self, request):
            return [fact(scope="global")]

        async def forget(self, request):
            return False

    async with console(provider=ReadOnly()) as http:
        turn = await http.post("/turn", data={**ANA, "message": "x"})
    assert 'class="record"' not in turn.text
    assert "not offered remember" in words(turn)


async def test_a_turn_that_is_no_longer_kept_says_so() -> None:
    async with console() as http:
        first = await http.post("/turn", data={**ANA, "message": "first"})
        form = {**ids_of(first), "key": "units", "fact": "miles"}
        for _ in range(KEPT_TURNS):
            await http.post("/turn", data={**ANA, "message": "x"})
        assert "no longer kept" in words(await http.get(str(first.url)))
        assert "no longer kept" in words(await http.post("/turn/remember", data=form))
        assert (await http.get("/agent/memories", params=ANA)).json() == []


async def test_a_turn_is_read_by_its_own_actor_whatever_the_address_says() -> None:
    async with console(fact("units", "miles")) as http:
        turn = await http.post("/turn", data={"actor": "ana", "message": "x"})
        mixed = await http.get("/turn", params={"actor": "bob", "run": ids_of(turn)["run"]})
    assert "before it answers ana" in words(mixed)


async def test_an_address_that_is_no_page_is_answered_as_a_page_and_an_api_path_as_a_problem() -> None:
    async with console() as http:
        page, problem = await http.get("/nothing"), await http.get("/agent/nothing")
    assert page.status_code == problem.status_code == 404
    assert "There is no such page here." in words(page)
    assert problem.headers["content-type"] == "application/problem+json"


async def test_a_store_that_cannot_be_reached_is_one_sentence_without_its_error() -> None:
    from onfile.errors import StoreError

    class Away:
        async def list(self, request):
            msg = "the database at secret-place is away"
            raise StoreError(msg)

        async def forget(self, request):
            return False

    async with console(provider=Away()) as http:
        answer = await http.get("/", params=ANA)
    assert answer.status_code == 500
    assert "could not be reached" in words(answer)
    assert "secret" not in answer.text
