"""List, publish, forget, pin: an operator's acts on single facts."""

from __future__ import annotations

import json
import re

import pytest

from tests.facts import NOON, fact

SECRET = "the-vault-opens-at-noon"


def test_a_published_fact_is_a_persons(onfile, stored):
    ended = onfile(
        "publish", "--db", "f.db", "--scope", "tenant:acme", "--key", "units", "--as", "dilan", " in\nkilos "
    )

    [memory] = stored("f.db")
    assert (ended.code, ended.out) == (0, f"on file at [tenant:acme]: {memory.record.id}\n")
    assert memory.record.text == "in kilos"
    assert (memory.record.origin.author, memory.record.origin.actor_ref) == ("human", "dilan")


def test_publishing_over_a_fact_keeps_its_id_and_pin(onfile, stored, on_file):
    db = on_file(fact("Fiscal Year", "October", scope="global", id="mem_1", pinned=True))

    ended = onfile("publish", "--db", db, "--scope", "global", "--key", "fiscal_year", "January", "--json")

    [memory] = stored(db)
    assert ended.json["id"] == memory.record.id == "mem_1"
    assert (memory.record.key, memory.record.text, memory.record.pinned) == ("Fiscal Year", "January", True)
    assert ended.json["unchanged"] is False


@pytest.mark.parametrize(("scope", "key", "text"), [(" ", "a", SECRET), ("a", "-", SECRET), ("a", "k", SECRET * 20)])
def test_a_fact_that_cannot_be_kept_is_refused_in_words(onfile, scope, key, text):
    ended = onfile("publish", "--db", "f.db", "--scope", scope, "--key", key, text)

    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert SECRET not in ended.err


def test_the_list_of_a_person_shows_what_is_beaten(onfile, on_file):
    db = on_file(
        fact("units", "miles", id="mem_1"),
        fact("units", "kilometres", scope="tenant:acme", author="human", id="mem_2"),
        fact("foreign", scope="tenant:other"),
    )

    ended = onfile("list", "--db", db, "--actor", "ana", "--tenant", "acme")

    assert ended.out == (
        "[actor:ana] units: miles\n"
        "    by the agent, 2026-09-01 12:00, mem_1\n"
        "    ↳ [tenant:acme] a person stated: kilometres\n"
    )


def test_an_id_of_any_text_stays_on_its_line_and_disturbs_no_terminal(onfile, on_file):
    db = on_file(fact("units", "miles", id="mem 1\n- [global] refunds: always\x1b[2J\u2028\u202e[x]"))

    listed = onfile("list", "--db", db)
    published = onfile("publish", "--db", db, "--scope", "actor:ana", "--key", "units", "miles")

    shown = "mem 1%0A- [global] refunds: always%1B[2J%E2%80%A8%E2%80%AE[x]"
    assert listed.out == f"[actor:ana] units: miles\n    by the agent, 2026-09-01 12:00, {shown}\n"
    assert published.out == f"on file at [actor:ana]: {shown}\n"
    assert onfile("list", "--db", db, "--json").json[0]["id"].startswith("mem 1\n- [global]")


def test_an_empty_id_is_asked_for_and_not_taken_for_all(onfile, stored, on_file):
    db = on_file(fact("units"))

    ended = onfile("forget", "", "--db", db, "--actor", "ana", "--yes")

    assert (ended.code, len(stored(db))) == (2, 1)
    assert "name the fact by its id" in ended.err


@pytest.mark.parametrize(
    "command",
    [
        ("export", "--scope", ""),
        ("export", "--scope", "tenant:acme", "--scope", " \t"),
        ("export", "--scope", "tenant:\udcff"),
        ("export", "--actor", ""),
        ("list", "--scope", ""),
        ("list", "--actor", ""),
        ("list", "--actor", "ana", "--tenant", ""),
        ("publish", "--scope", "", "--key", "k", "text"),
        ("forget", "mem_1", "--actor", "", "--yes"),
        ("forget", "mem_1", "--actor", "ana", "--tenant", "", "--yes"),
        ("erase", "--scope", "", "--yes"),
        ("erase", "--scope", "\u3000", "--yes"),
        ("turn", "--actor", ""),
        ("turn", "--actor", "ana", "--tenant", ""),
        ("turn", "--actor", "ana", "--scope", ""),
        ("recall", "text", "--actor", ""),
        ("recall", "text", "--scope", ""),
        ("recall", "text", "--actor", "ana", "--tenant", ""),
    ],
    ids=" ".join,
)
def test_a_scope_a_person_or_an_organisation_without_a_name_is_refused_by_every_command(
    command, onfile, stored, on_file
):
    db = on_file(fact("units"))

    ended = onfile(*command, "--db", db)

    assert (ended.code, ended.out, ended.err.count("\n"), len(stored(db))) == (2, "", 1, 1)
    assert re.match(r"onfile: --(scope|actor|tenant) is (blank|no UTF-8 text).*; name ", ended.err)


def test_the_list_in_json_is_one_document_of_any_length(onfile, on_file):
    none = onfile("list", "--db", on_file(name="none.db"), "--json")
    two = onfile("list", "--db", on_file(fact("a", "x\u2028y"), fact("b", id="mem_2"), name="two.db"), "--json")

    assert (none.out, none.json) == ("[]\n", [])
    assert two.out == json.dumps(two.json, ensure_ascii=False, indent=2) + "\n"
    assert two.json[0]["text"] == "x\u2028y"


def test_the_list_holds_everything_or_what_is_at_the_scopes(onfile, on_file):
    db = on_file(*(fact(f"k{n:03}", scope="global") for n in range(301)), fact("mine"))

    assert len(onfile("list", "--db", db, "--json").json) == 302
    assert [row["key"] for row in onfile("list", "--db", db, "--scope", "actor:ana", "--json").json] == ["mine"]
    assert onfile("list", "--db", db).out.count("[global]") == 301


def test_the_list_as_json_has_the_members_that_an_import_reads(onfile, on_file, stored):
    db = on_file(fact("請求先", "東京", pinned=True))

    listed = onfile("list", "--db", db, "--json")
    onfile("import", "-", "--db", "g.db", stdin="\n".join(json.dumps(row) for row in listed.json))

    assert "東京" in listed.out
    assert stored("g.db") == stored(db)


def test_a_fact_cannot_write_on_the_terminal_what_it_is_not(onfile, on_file):
    db = on_file(fact("k", "a\u202eb [bold]c[/] \x1b[31md\n- [global] x: y"))

    ended = onfile("list", "--db", db)

    assert ended.out.splitlines()[0] == "[actor:ana] k: ab [bold]c[/]  [31md - [global] x: y"


def test_an_actor_may_forget_their_own_fact(onfile, on_file, stored):
    db = on_file(fact(id="mem_1"))

    assert onfile("forget", "mem_1", "--db", db, "--actor", "ana", "--yes").out == "forgotten\n"
    assert stored(db) == []


def test_a_wider_fact_is_not_forgotten_and_the_reason_says_where_it_is_held(onfile, on_file, stored):
    db = on_file(fact("units", SECRET, scope="tenant:acme", id="mem_1"))

    ended = onfile("forget", "mem_1", "--db", db, "--actor", "ana", "--tenant", "acme", "--yes")

    assert (ended.code, ended.out) == (2, "")
    assert "tenant:acme" in ended.err
    assert SECRET not in ended.err
    assert len(stored(db)) == 1


def test_a_fact_that_the_actor_cannot_see_is_as_unknown_as_none(onfile, on_file):
    db = on_file(fact(scope="actor:bob", id="mem_1"))

    foreign = onfile("forget", "mem_1", "--db", db, "--actor", "ana", "--yes")
    unknown = onfile("forget", "mem_9", "--db", db, "--actor", "ana", "--yes")

    assert foreign == unknown
    assert foreign.code == 2


def test_nothing_is_forgotten_unasked_where_nobody_can_answer(onfile, on_file, stored):
    db = on_file(fact(id="mem_1"))

    ended = onfile("forget", "mem_1", "--db", db, "--actor", "ana")

    assert ended.code == 2
    assert "--yes" in ended.err
    assert len(stored(db)) == 1


def test_a_pin_is_set_and_cleared_and_the_date_stays(onfile, on_file, stored):
    db = on_file(fact(scope="tenant:acme", id="mem_1"))

    assert onfile("pin", "mem_1", "--db", db).out == "pinned\n"
    assert [(m.record.pinned, m.record.updated_at) for m in stored(db)] == [(True, NOON)]
    assert onfile("unpin", "mem_1", "--db", db, "--json").json == {"pinned": False}
    assert [(m.record.pinned, m.record.updated_at) for m in stored(db)] == [(False, NOON)]


def test_pinning_an_unknown_id_is_told(onfile, on_file):
    ended = onfile("pin", "mem_9", "--db", on_file())

    assert (ended.code, ended.out) == (2, "")


def test_a_fact_that_expires_uncovers_the_wider_one_until_that_is_taken_back(onfile, on_file):
    db = on_file(
        fact("units", "miles", id="mem_1", scope="actor:ana"), fact("units", "kilometres", id="mem_2", scope="global")
    )

    def shown() -> str:
        return onfile("turn", "--actor", "ana", "--db", db).out

    assert onfile("expire", "mem_1", "--at", "2999-01-31T01:00+01:00", "--db", db).out == (
        "not read from 2999-01-31 00:00 UTC on\n"
    )
    assert "units: miles" in shown()
    assert onfile("expire", "mem_1", "--at", "2020-01-31", "--db", db, "--json").json == {
        "expiresAt": "2020-01-31T00:00:00+00:00"
    }
    assert "miles" not in shown()
    assert "units: kilometres" in shown()
    assert onfile("expire", "mem_1", "--never", "--db", db).out == "does not expire\n"
    assert "units: miles" in shown()


@pytest.mark.parametrize(
    ("options", "said"),
    [((), "--never"), (("--at", "2020-01-31", "--never"), "--never"), (("--at", "soon"), "such as 2027-01-31")],
)
def test_an_expiry_that_is_no_time_is_told(onfile, on_file, options, said):
    ended = onfile("expire", "mem_1", *options, "--db", on_file(fact("units", id="mem_1")))

    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
