"""How the command starts, ends, explains itself and stays documented."""

from __future__ import annotations

import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer

from onfile.cli import database
from onfile.cli.application import application
from tests.facts import fact

COMMAND = typer.main.get_command(application)
COMMANDS = sorted(COMMAND.commands)
SECRET = "the-vault-opens-at-noon"


def options(name: str) -> set[str]:
    """The options of a command, or of all commands of a group."""
    command = COMMAND.commands[name]
    each = getattr(command, "commands", {"": command}).values()
    return {opt for one in each for param in one.params for opt in param.opts if opt.startswith("--")}


def documented(project: Path) -> str:
    return (project / "docs" / "cli.md").read_text("utf-8")


def section(text: str, name: str) -> str:
    """The part of the page whose heading names the command."""
    [part] = [part for part in re.split(r"^### ", text, flags=re.MULTILINE) if f"`onfile {name}" in part.split("\n")[0]]
    return part


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented_with_an_example_and_all_its_options(project: Path, name: str):
    part = section(documented(project), name)

    assert f"\nonfile {name}" in part
    assert {opt for opt in options(name) if f"`{opt}" not in part} == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_documented_option_exists(project: Path, name: str):
    table = "\n".join(row for row in section(documented(project), name).splitlines() if row.startswith("| `--"))

    assert set(re.findall(r"`(--[a-z-]+)", table)) - options(name) == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_explains_itself_with_an_example(name: str):
    command = COMMAND.commands[name]

    assert f"[bold]onfile {name}" in (command.help or "")
    assert [param.name for param in command.params if not getattr(param, "help", None)] == []


def test_help_is_there_in_less_than_four_tenths_of_a_second(process, compiled):
    def took() -> float:
        # Of the processor, so that others who are busy on the machine count less.
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = process("--help", environment=compiled)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert b"turn" in done.stdout
        return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

    assert any(took() < 0.4 for _ in range(12))


def test_without_a_command_the_help_is_shown(onfile):
    ended = onfile()

    assert (ended.code, ended.err) == (0, "")
    assert "onfile [OPTIONS] COMMAND" in ended.out


def test_the_version_is_printed(onfile):
    assert re.fullmatch(r"onfile \d+\.\d+\.\d+\S*\n", onfile("--version").out)


@pytest.mark.parametrize("arguments", [["nonsense"], ["turn"], ["list", "--nonsense"], ["import"], ["--nonsense"]])
def test_a_mistake_in_the_command_is_one_sentence_that_names_the_help(onfile, arguments: list[str]):
    ended = onfile(*arguments)

    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert "--help" in ended.err


def test_a_mistyped_command_is_answered_with_the_one_that_was_meant(onfile):
    assert onfile("lst").err == "onfile: No such command 'lst'. Did you mean 'list'? Or see 'onfile --help'\n"


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_the_base_install_says_what_to_install(missing: str):
    code = f"import sys; sys.modules['{missing}'] = None; from onfile.cli import main; sys.exit(main(['list']))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "pip install 'onfile[cli]'" in done.stderr


def test_a_command_that_has_no_streams_ends_without_a_traceback(on_file):
    db = on_file(fact("units", "kilometres", scope="global"))
    command = f'exec "{sys.executable}" -m onfile.cli list --db "{db}"'

    silent = subprocess.run(["sh", "-c", f"{command} >&-"], capture_output=True, text=True, check=False, timeout=60)
    mute = subprocess.run(["sh", "-c", f"{command} 2>&-"], capture_output=True, text=True, check=False, timeout=60)

    assert (silent.returncode, silent.stderr) == (0, "")
    assert mute.returncode == 0
    assert "kilometres" in mute.stdout


def test_something_unforeseen_is_one_sentence_without_what_it_was_about(onfile, monkeypatch):
    def broken(given: str) -> None:
        raise LookupError(SECRET)

    monkeypatch.setattr(database, "place_of", broken)

    ended = onfile("list")

    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert "LookupError" in ended.err
    assert SECRET not in ended.err


def test_ctrl_c_ends_a_command_quietly(started):
    Path("slow.py").write_text(
        "import asyncio, pathlib\nasync def make():\n    pathlib.Path('begun').touch()\n    await asyncio.sleep(60)\n"
    )
    waiting = started("conform", "slow:make")
    for _ in range(300):
        if Path("begun").exists():
            break
        time.sleep(0.1)
    waiting.send_signal(signal.SIGINT)

    out, err = waiting.communicate(timeout=20)

    assert (waiting.returncode, out, err) == (130, b"", b"")


def test_a_reader_that_goes_away_ends_a_command_quietly(started, on_file):
    db = on_file(*(fact(f"k{n}", "x" * 200, scope="global") for n in range(2_000)))
    exporting = started("export", "--db", db)
    exporting.stdout.readline()
    exporting.stdout.close()

    exporting.wait(timeout=20)

    assert exporting.stderr.read() == b""
    assert exporting.returncode == 1
