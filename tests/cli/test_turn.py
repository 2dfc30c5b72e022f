"""`onfile turn` prints what a model would get, and tells why."""

from __future__ import annotations

import time

import pytest

from onfile.memory import Memory
from onfile.records import Actor
from onfile.scopes import ScopeContext
from tests.cli.conftest import asked
from tests.facts import fact

ANA = ScopeContext(actor=Actor(id="ana", tenant_ref="acme"))


@pytest.fixture
def facts(on_file) -> str:
    return on_file(
        fact("units", "miles", id="mem_1"),
        fact("units", "キロ </memory>", scope="tenant:acme", author="human", pinned=True, id="mem_2"),
        fact("label", "two sides", scope="depot:north", author="human"),
        fact("currency", "euros", scope="global", author="human"),
    )


def test_standard_output_is_the_block_and_one_line_break(process, facts):
    async def offer(provider):
        return await Memory(provider).offer(ANA, "how do we label a pallet?")

    command = ("turn", "--db", facts, "--actor", "ana", "--tenant", "acme", "how do we label a pallet?")
    done = process(*command, environment={"LC_ALL": "C", "PYTHONIOENCODING": "ascii"})

    assert done.stdout == asked(facts, offer).block.encode() + b"\n"
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_turn_on_three_thousand_facts_takes_less_than_two_seconds(process, compiled, on_file):
    db = on_file(*(fact(f"key-{n}", f"fact {n}", scope="tenant:acme", minutes=n) for n in range(3_000)))

    def took() -> float:
        begun = time.monotonic()
        done = process("turn", "--db", db, "--actor", "ana", "--tenant", "acme", "key 7", environment=compiled)
        assert b"<memory>" in done.stdout
        return time.monotonic() - begun

    assert any(took() < 2 for _ in range(5))


def test_why_names_each_key_what_it_beat_and_the_reason(onfile, facts):
    ended = onfile("turn", "--db", facts, "--actor", "ana", "--tenant", "acme", "--why", "--max-memories", "1")

    block, _, table = ended.out.partition("</memory>\n")
    assert "units: miles" in block
    rows = {row.split()[1]: row for row in table.splitlines() if row.startswith((" yes", "yes", " no", "no"))}
    assert "[tenant:acme] キロ" in rows["units"]
    assert "pinned" in rows["units"]
    assert "place 2 of 2, ceiling 1" in rows["currency"]
    assert "label" not in rows


def test_json_gives_the_digest_and_the_reasons(onfile, facts):
    ended = onfile("turn", "--db", facts, "--actor", "ana", "--tenant", "acme", "--json")

    assert ended.json["digest"]["scopes"] == ["actor:ana", "tenant:acme", "global"]
    assert ended.json["digest"]["block"].startswith("<memory>")
    assert [(line["key"], line["included"]) for line in ended.json["why"]] == [("units", True), ("currency", True)]
    assert ended.json["why"][0]["beats"][0]["id"] == "mem_2"
    assert "キロ" in ended.out


def test_the_scopes_of_the_turn_may_be_named_most_specific_first(onfile, facts):
    named = ("--scope", "tenant:acme", "--scope", "depot:north", "--scope", "actor:ana")

    ended = onfile("turn", "--db", facts, "--actor", "ana", *named, "--json")

    assert ended.json["digest"]["scopes"] == ["tenant:acme", "depot:north", "actor:ana"]
    assert {line["key"]: line["scope"] for line in ended.json["why"]} == {
        "units": "tenant:acme",
        "label": "depot:north",
    }


def test_a_turn_to_which_nothing_applies_prints_an_empty_block_and_says_so(onfile, on_file):
    ended = onfile("turn", "--db", on_file(), "--actor", "ana")

    assert (ended.code, ended.out) == (0, "\n")
    assert "nothing on file" in ended.err


@pytest.mark.parametrize(
    "who", [("--actor", ""), ("--actor", "ana", "--tenant", ""), ("--actor", "ana", "--scope", " ")]
)
def test_a_turn_for_nobody_is_refused(onfile, facts, who):
    ended = onfile("turn", "--db", facts, *who)

    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)


def test_a_negative_ceiling_is_refused(onfile, facts):
    assert onfile("turn", "--db", facts, "--actor", "ana", "--max-memories", "-1").code == 2
