"""Import and export are an operator's restore and back-up: exact, all or nothing, and silent about facts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from onfile.records import MemoryOrigin
from tests.facts import fact

SECRET = "the-vault-opens-at-noon"


def line(**members: object) -> str:
    return json.dumps({"scope": "actor:ana", "key": "units", "text": "miles", "author": "agent"} | members)


def test_four_members_are_enough_for_a_fact(onfile, stored):
    ended = onfile("import", "-", "--db", "f.db", stdin=line())

    [memory] = stored("f.db")
    assert (ended.code, ended.out, ended.err) == (0, "", "1 fact imported\n")
    assert (memory.record.scope, memory.record.key, memory.record.text) == ("actor:ana", "units", "miles")
    assert memory.record.id.startswith("mem_")
    assert memory.created_at == memory.record.updated_at


def test_what_is_exported_is_imported_exactly(onfile, stored, on_file, tmp_path: Path):
    origin = MemoryOrigin(author="human", thread_id="t/1", run_id="r 1", actor_ref="дмитрий")
    before = on_file(
        fact("units", 'キロ <b> \\ "quoted" \u2066', pinned=True, minutes=1.000001, origin=origin),
        fact("Fiscal Year", "C++ & [bold]1.0[/]", scope="tenant:acme ", author="human"),
        fact("a", "b", scope="Tenant:acme", origin=MemoryOrigin(author="agent")),
    )

    onfile("export", "--db", before, "--out", "first.jsonl")
    onfile("import", "first.jsonl", "--db", "after.db")
    onfile("export", "--db", "after.db", "--out", "second.jsonl")

    assert stored("after.db") == stored(before)
    assert (tmp_path / "first.jsonl").read_bytes() == (tmp_path / "second.jsonl").read_bytes()
    assert "キロ" in (tmp_path / "first.jsonl").read_text("utf-8")


def test_a_fact_that_expires_does_so_after_an_import_as_before(onfile, stored):
    gone, going = "2020-01-01T00:00:00Z", "2990-01-01T00:00:00Z"
    lines = [line(expires_at=gone), line(key="b", expiresAt=going), line(key="c")]

    onfile("import", "-", "--db", "f.db", stdin="\n".join(lines))
    exported = onfile("export", "--db", "f.db").out
    onfile("import", "-", "--db", "again.db", stdin=exported)

    assert [json.loads(row).get("expires_at") for row in exported.splitlines()] == [going, None, gone]
    assert stored("again.db") == stored("f.db")
    assert "not read from 2990-01-01 00:00 on" in onfile("list", "--db", "again.db", "--actor", "ana").out
    assert "units" not in onfile("turn", "--db", "again.db", "--actor", "ana").out


def test_an_export_of_a_scope_is_that_scope_and_nothing_like_it(onfile, on_file):
    db = on_file(fact("a", scope="tenant:acme"), fact("b", scope="tenant:acme-corp"), fact("c", scope="tenant:ACME"))

    ended = onfile("export", "--db", db, "--scope", "tenant:acme")

    assert [json.loads(row)["key"] for row in ended.out.splitlines()] == ["a"]


def test_an_export_is_written_while_it_is_read(on_file, tmp_path: Path):
    db = on_file(*(fact(f"question {number}", "an answer " * 20, id=f"mem_{number}") for number in range(20_000)))
    measured = (
        "import resource, sys; from onfile.cli import main; code = main(sys.argv[1:]); "
        "print(code, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
    )

    def peak(*scope: str) -> int:
        arguments = [sys.executable, "-c", measured, "export", "--db", db, "--out", "facts.jsonl", *scope]
        done = subprocess.run(arguments, capture_output=True, text=True, check=True)
        code, kilobytes = done.stderr.split()[-2:]
        assert code == "0"
        return int(kilobytes)

    nothing, everything = peak("--scope", "tenant:none"), peak()

    assert len((tmp_path / "facts.jsonl").read_bytes()) > 8_000_000
    assert everything - nothing < 8_000


@pytest.mark.parametrize(
    ("out", "reason"),
    [
        (".", ". is a folder; name a file in it"),
        ("missing/facts.jsonl", "missing/facts.jsonl cannot be written: no such file or directory"),
    ],
)
def test_a_place_that_cannot_be_written_to_is_told_before_anything_is_read(onfile, on_file, out, reason):
    ended = onfile("export", "--db", on_file(fact("units")), "--out", out)

    assert (ended.code, ended.out, ended.err) == (2, "", f"onfile: {reason}\n")


def test_an_export_replaces_what_a_link_leads_to_and_writes_into_a_pipe_as_it_is(onfile, on_file, tmp_path: Path):
    db = on_file(fact("units"))
    (tmp_path / "last.jsonl").write_text("older")
    (tmp_path / "link.jsonl").symlink_to("last.jsonl")
    os.mkfifo(tmp_path / "pipe")

    with subprocess.Popen(["cat", "pipe"], stdout=subprocess.PIPE) as reader:
        piped = onfile("export", "--db", db, "--out", "pipe")
        through_pipe = reader.stdout.read().decode()
    linked = onfile("export", "--db", db, "--out", "link.jsonl")

    assert (piped.code, linked.code) == (0, 0)
    assert (tmp_path / "link.jsonl").is_symlink()
    assert through_pipe == (tmp_path / "last.jsonl").read_text("utf-8")
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.endswith(".part")) == []


def test_an_export_of_nothing_says_so_beside_its_empty_output(onfile, on_file):
    db = on_file()

    there = onfile("export", "--db", db, "--scope", "tenant:acme")
    at_all = onfile("export", "--db", db)

    assert (there.code, there.out, there.err) == (0, "", "nothing is on file there\n")
    assert (at_all.code, at_all.out, at_all.err) == (0, "", "nothing is on file yet\n")


def test_bad_lines_are_named_with_their_reasons_and_nothing_is_imported(onfile, stored, on_file):
    db = on_file()
    lines = [line(), "{nonsense " + SECRET, "", line(text=SECRET, author="robot"), line(key=SECRET, scope=" ")]

    ended = onfile("import", "-", "--db", db, stdin="\n".join(lines))

    assert ended.code == 2
    assert [row.partition(":")[0] for row in ended.err.splitlines()] == ["line 2", "line 4", "line 5", "onfile"]
    assert 'line 4: author must be "human" or "agent"' in ended.err
    assert SECRET not in ended.err + ended.out
    assert stored(db) == []


def test_a_member_given_twice_stops_the_import_with_its_line_and_name(onfile, stored, on_file):
    db = on_file()
    twice = line()[:-1] + f', "text": "{SECRET}"}}'

    ended = onfile("import", "-", "--db", db, stdin=f"{line(key='a')}\n{twice}")

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines()[0] == "line 2: text is given more than once"
    assert SECRET not in ended.err
    assert stored(db) == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (json.dumps([json.loads(line())], indent=2).encode(), "the file is one JSON array; "),
        (f"\n [{line()}, {line(key='b')}]".encode(), "the file is one JSON array; "),
        (json.dumps(json.loads(line()), indent=2).encode(), "the file is JSON over several lines; "),
        (line().encode("utf-16"), "the file is UTF-16; save it as UTF-8"),
    ],
)
def test_a_file_that_is_no_json_lines_is_told_as_what_it_is(onfile, content, reason):
    ended = onfile("import", "-", "--db", "f.db", "--keep-going", stdin=content)

    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert ended.err.startswith(f"onfile: {reason}")


def test_of_very_many_bad_lines_a_hundred_are_told_and_the_document_has_all(onfile):
    bad = "[1]\n" * 150

    told = onfile("import", "-", "--db", "f.db", stdin=bad)
    document = onfile("import", "-", "--db", "f.db", "--json", stdin=bad).json

    assert told.err.splitlines()[99:101] == [
        "line 100: the line must be a JSON object",
        "and 50 bad lines more; --json lists them all",
    ]
    assert len(document["bad"]) == 150


@pytest.mark.parametrize("command", [["import", "-"], ["erase", "--scope", "a"]])
def test_a_closed_standard_input_is_told_in_a_sentence(command, on_file):
    shell = 'exec "$@" <&-'
    program = ["sh", "-c", shell, "sh", sys.executable, "-m", "onfile.cli", *command, "--db", on_file()]

    done = subprocess.run(program, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "unforeseen" not in done.stderr


def test_an_export_that_is_told_to_end_leaves_the_last_file_whole_and_nothing_beside_it(
    started, on_file, tmp_path: Path
):
    db = on_file(*(fact(f"question {number}", id=f"mem_{number}") for number in range(20_000)))
    (tmp_path / "facts.jsonl").write_text("the last one")

    running = started("export", "--db", db, "--out", "facts.jsonl")
    deadline = time.monotonic() + 30
    while not list(tmp_path.glob("facts.jsonl.*.part")) and time.monotonic() < deadline:
        time.sleep(0.001)
    running.terminate()

    assert running.wait(30) == 130
    assert (tmp_path / "facts.jsonl").read_text() == "the last one"
    assert not list(tmp_path.glob("*.part"))


def test_keep_going_takes_the_good_lines_and_lists_the_bad_ones(onfile, stored):
    ended = onfile("import", "-", "--db", "f.db", "--keep-going", "--json", stdin=f"{line()}\n[1]\n{line(key='b')}")

    assert ended.code == 1
    assert ended.json["inserted"] == 2
    assert ended.json["bad"] == [{"line": 2, "reason": "the line must be a JSON object"}]
    assert len(stored("f.db")) == 2


@pytest.mark.parametrize("again", [{"id": "mem_1", "key": "other"}, {"id": "mem_2", "key": "UNITS"}])
def test_a_fact_that_is_on_file_already_stops_the_import(onfile, stored, on_file, again):
    db = on_file(fact("units", SECRET, id="mem_1"))
    before = stored(db)

    ended = onfile("import", "-", "--db", db, stdin=f"{line(key='new')}\n\n{line(**again)}")

    assert ended.code == 2
    assert "1 fact of the file is on file already" in ended.err
    assert "line 3" in ended.err
    assert SECRET not in ended.err
    assert stored(db) == before


def test_skip_keeps_what_stands(onfile, stored, on_file):
    db = on_file(fact("units", "kilometres"))

    ended = onfile("import", "-", "--db", db, "--skip", stdin=f"{line()}\n{line(key='new')}")

    assert (ended.code, ended.err) == (0, "1 fact imported, 1 skipped as on file already\n")
    assert {m.record.key: m.record.text for m in stored(db)} == {"units": "kilometres", "new": "miles"}


def test_replace_lets_the_line_win(onfile, stored, on_file):
    db = on_file(fact("units", "kilometres"))

    ended = onfile("import", "-", "--db", db, "--replace", stdin=f"{line()}\n{line(key='new')}")

    assert (ended.code, ended.err) == (0, "1 fact imported, 1 replaced\n")
    assert {m.record.key: m.record.text for m in stored(db)} == {"units": "miles", "new": "miles"}


def test_a_file_that_gives_one_question_twice_stops_and_names_both_lines(onfile):
    twice = f"{line(key='Fiscal Year')}\n{line()}\n{line(key='fiscal_year', text=SECRET)}"

    ended = onfile("import", "-", "--db", "f.db", stdin=twice)

    assert ended.code == 2
    assert "line 3 repeats line 1" in ended.err
    assert SECRET not in ended.err
    assert not Path("f.db").exists()


@pytest.mark.parametrize(("choice", "text"), [("--skip", "first"), ("--replace", "last")])
def test_of_a_question_given_twice_skip_keeps_the_first_and_replace_the_last(onfile, stored, choice, text):
    onfile("import", "-", "--db", "f.db", choice, stdin=f"{line(text='first')}\n{line(text='last')}")

    assert [memory.record.text for memory in stored("f.db")] == [text]


def test_skip_and_replace_together_are_refused(onfile):
    ended = onfile("import", "-", "--db", "f.db", "--skip", "--replace")

    assert (ended.code, ended.err.count("\n")) == (2, 1)


def test_a_byte_order_mark_and_foreign_line_ends_are_no_part_of_a_fact(onfile, stored):
    content = b"\xef\xbb\xbf" + line(updated_at="2026-03-01T10:00:00+02:00").encode() + b"\r\n\r\n"

    ended = onfile("import", "-", "--db", "f.db", stdin=content)

    assert ended.code == 0
    assert stored("f.db")[0].record.updated_at == datetime(2026, 3, 1, 8, tzinfo=UTC)


def test_facts_and_keys_that_nobody_could_write_again_are_noted(onfile):
    ended = onfile("import", "-", "--db", "f.db", stdin=f"{line()}\n{line(key='k' * 65, text='x' * 241)}")

    assert ended.code == 0
    assert "1 fact longer than 240 characters" in ended.err
    assert "1 key longer than 64 characters" in ended.err
    assert ended.err.count("line 2") == 2


@pytest.mark.parametrize("file", ["nothing-here.jsonl", "."])
def test_a_file_that_cannot_be_read_is_one_sentence(onfile, file):
    ended = onfile("import", file, "--db", "f.db")

    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "cannot be read" in ended.err


def test_an_export_that_fails_leaves_the_last_one_whole(onfile, tmp_path: Path):
    (tmp_path / "kept.jsonl").write_text("yesterday's\n")
    (tmp_path / "bad.db").write_text("no database")

    ended = onfile("export", "--db", "bad.db", "--out", "kept.jsonl")

    assert ended.code == 2
    assert (tmp_path / "kept.jsonl").read_text() == "yesterday's\n"
    assert not list(tmp_path.glob("*.part"))


def test_a_long_import_is_one_transaction_and_takes_seconds(onfile, stored):
    many = "\n".join(line(key=f"k{n}", text=f"fact {n}") for n in range(3_000))

    ended = onfile("import", "-", "--db", "f.db", stdin=many)

    assert ended.err == "3,000 facts imported\n"
    assert len(stored("f.db")) == 3_000


EMBEDDER = """
from onfile.recall import CallableEmbedder

def make():
    return CallableEmbedder(lambda texts: [[float("pallet" in text), 1.0] for text in texts], model="m", dimensions=2)

def broken():
    def embed(texts):
        raise RuntimeError("the model is away, texts were: " + str(texts))
    return CallableEmbedder(embed, model="m", dimensions=2)
"""


def test_an_import_with_an_embedder_gives_vectors_at_once(onfile, tmp_path: Path):
    pytest.importorskip("numpy")
    (tmp_path / "import_embedder.py").write_text(EMBEDDER)
    embedder = ("--embedder", "import_embedder:make")

    ended = onfile("import", "-", "--db", "f.db", *embedder, stdin=f"{line()}\n{line(key='b')}")
    again = onfile("import", "-", "--db", "f.db", "--skip", "--json", *embedder, stdin=line())

    assert (ended.code, ended.err) == (0, "2 facts imported, 2 given a vector\n")
    assert (again.json["skipped"], again.json["embedded"], again.json["without_vector"]) == (1, 0, 0)
    assert onfile("reindex", "--db", "f.db", *embedder, "--json").json == {"embedded": 0}


def test_an_import_says_how_many_facts_are_without_a_vector_where_others_have_one(onfile, tmp_path: Path):
    pytest.importorskip("numpy")
    (tmp_path / "import_embedder.py").write_text(EMBEDDER)
    before = onfile("import", "-", "--db", "f.db", stdin=line())
    onfile("reindex", "--db", "f.db", "--embedder", "import_embedder:make")

    ended = onfile("import", "-", "--db", "f.db", stdin=f"{line(key='b')}\n{line(key='c')}")

    assert before.err == "1 fact imported\n"
    assert ended.err == (
        "2 facts imported\n"
        "note: 2 facts on file without a vector, found by words alone; "
        "'onfile reindex --embedder MODULE:NAME' makes them\n"
    )


def test_an_embedder_that_fails_loses_no_fact_of_the_import(onfile, stored, tmp_path: Path):
    pytest.importorskip("numpy")
    (tmp_path / "import_embedder.py").write_text(EMBEDDER)

    ended = onfile("import", "-", "--db", "f.db", "--embedder", "import_embedder:broken", stdin=line(text=SECRET))

    assert (ended.code, len(stored("f.db"))) == (1, 1)
    assert ended.err.splitlines()[0] == "1 fact imported"
    assert (
        "the facts are on file without vectors: the embedder failed (RuntimeError); run 'onfile reindex'" in ended.err
    )
    assert SECRET not in ended.err


def test_an_embedder_that_cannot_be_made_is_told_before_anything_is_imported(onfile, tmp_path: Path):
    ended = onfile("import", "-", "--db", "f.db", "--embedder", "no_such_module:make", stdin=line())

    assert ended.code == 2
    assert not (tmp_path / "f.db").exists()
