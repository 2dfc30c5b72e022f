"""Which database a command works on, and what is said when it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.facts import fact

PASSWORD = "geheim-4711"


def keys(ended) -> list[str]:
    return [row["key"] for row in ended.json]


def test_the_database_may_be_named_before_or_after_the_command_and_the_later_one_counts(onfile, on_file, monkeypatch):
    one, two, three = (on_file(fact(name), name=f"{name}.db") for name in ("one", "two", "three"))
    monkeypatch.setenv("ONFILE_DB", one)

    assert keys(onfile("list", "--json")) == ["one"]
    assert keys(onfile("--db", two, "list", "--json")) == ["two"]
    assert keys(onfile("--db", two, "list", "--json", "--db", f"sqlite:///{three}")) == ["three"]


def test_without_a_name_the_database_is_a_file_in_the_data_directory(onfile, tmp_path: Path):
    empty = onfile("list")
    onfile("publish", "--scope", "global", "--key", "units", "kilos")

    assert (empty.code, empty.err) == (0, "nothing is on file yet\n")
    assert keys(onfile("list", "--json")) == ["units"]
    assert list(tmp_path.rglob("onfile.db"))


@pytest.mark.parametrize("command", [("list",), ("export",), ("turn", "--actor", "ana"), ("pin", "mem_1")])
def test_a_mistyped_path_is_told_rather_than_answered_from_an_empty_file(onfile, command):
    ended = onfile(*command, "--db", "mistyped.db")

    assert (ended.code, ended.out) == (2, "")
    assert "mistyped.db" in ended.err
    assert not Path("mistyped.db").exists()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (f"postgresql://ops:{PASSWORD}@[::1/facts", "no database URL"),
        (f"nosuchdb://ops:{PASSWORD}@localhost/facts", "nosuchdb"),
        (f"postgresql+psycopg2://ops:{PASSWORD}@localhost/facts", "leave the driver out"),
        ("sqlite:////nowhere/at/all/facts.db", "folder"),
        ("folder", "folder"),
        ("text.db", "no SQLite database"),
    ],
)
def test_a_database_that_cannot_be_used_is_one_sentence_without_the_password(onfile, tmp_path: Path, url, said):
    (tmp_path / "text.db").write_text(f"this is {PASSWORD}, no database")
    (tmp_path / "folder").mkdir()

    ended = onfile("publish", "--scope", "global", "--key", "units", PASSWORD, "--db", url)

    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert said in ended.err
    assert PASSWORD not in ended.err


def test_a_path_may_hold_what_a_url_may_not(onfile):
    onfile("publish", "--scope", "global", "--key", "units", "kilos", "--db", "50% off? #1.db")

    assert Path("50% off? #1.db").exists()
    assert keys(onfile("list", "--json", "--db", "50% off? #1.db")) == ["units"]


@pytest.mark.parametrize(
    "command",
    [
        ("publish", "--scope", "actor:ana", "--key", "units", "the-vault-opens-at-noon"),
        ("erase", "--scope", "actor:ana", "--yes"),
        ("forget", "mem_1", "--actor", "ana", "--yes"),
        ("pin", "mem_1"),
    ],
    ids=lambda command: command[0],
)
def test_a_database_that_may_only_be_read_is_listed_and_refuses_a_change_in_a_sentence(
    onfile, on_file, stored, command
):
    db = on_file(fact("units", id="mem_1"))
    read_only = f"sqlite:///file:{db}?mode=ro&uri=true"

    listed, changed = onfile("list", "--db", read_only), onfile(*command, "--db", read_only)

    assert "units" in listed.out
    assert (changed.code, changed.out) == (2, "")
    assert changed.err == "onfile: the database could not do it: the file may not be written to\n"
    assert len(stored(db)) == 1
