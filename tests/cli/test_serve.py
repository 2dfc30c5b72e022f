"""`onfile serve` starts the pages on this machine, behind a token."""

from __future__ import annotations

import re
import signal
import socket
import time
from pathlib import Path

import httpx
import pytest


@pytest.fixture
def client():
    with httpx.Client(follow_redirects=True, timeout=5, trust_env=False) as client:
        yield client


def wait_for(client: httpx.Client, address: str) -> httpx.Response:
    for _ in range(100):
        try:
            return client.get(address)
        except httpx.ConnectError:
            time.sleep(0.1)
    pytest.fail("the server did not start")


def test_the_demo_prints_one_address_whose_token_opens_it_and_leaves_nothing_behind(
    started, client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setenv("ONFILE_DB", "mine.db")
    serving = started("serve", "--demo", "--port", "0")
    address = serving.stdout.readline().decode().strip()

    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{20,}", address)
    bare = wait_for(client, address.partition("?")[0])
    opened = client.get(address)
    assert (bare.status_code, opened.status_code) == (401, 200)
    assert "booking-cutoff" in opened.text

    serving.send_signal(signal.SIGINT)
    out, err = serving.communicate(timeout=20)
    assert (serving.returncode, out) == (0, b"")
    assert b"Traceback" not in err
    assert list(temporary.iterdir()) == []
    assert not (tmp_path / "mine.db").exists()


def test_a_port_that_is_taken_is_one_sentence(onfile):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = onfile("serve", "--db", "f.db", "--port", str(taken.getsockname()[1]))

    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)


def test_the_demo_does_not_go_into_a_database_that_somebody_names(onfile):
    ended = onfile("serve", "--demo", "--db", "mine.db")

    assert (ended.code, ended.out) == (2, "")
    assert not Path("mine.db").exists()


def test_without_the_server_extra_the_command_says_what_to_install(onfile, monkeypatch):
    monkeypatch.setattr("onfile.cli.serve.find_spec", lambda name: None)

    ended = onfile("serve")

    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "pip install 'onfile[server]'" in ended.err
