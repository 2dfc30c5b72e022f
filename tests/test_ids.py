import os
import re
import subprocess
import sys
import threading
from unittest.mock import patch

import pytest

from onfile.ids import new_id


def test_an_id_is_its_prefix_and_26_crockford_characters():
    assert re.fullmatch(r"mem_[0-7][0-9A-HJKMNP-TV-Z]{25}", new_id())
    assert new_id("run_").startswith("run_")


def test_the_first_ten_characters_are_the_time():
    # given the example of the ULID specification
    assert new_id("", now_ms=1469918176385)[:10] == "01ARYZ6S41"
    assert new_id("", now_ms=0)[:10] == "0000000000"
    assert new_id("", now_ms=2**48 - 1)[:10] == "7ZZZZZZZZZ"


def test_ids_of_one_process_rise_even_within_a_millisecond():
    ids = [new_id() for _ in range(5_000)]

    assert ids == sorted(set(ids))


def test_ids_made_at_one_given_time_rise_too():
    ids = [new_id(now_ms=1_000) for _ in range(100)]

    assert ids == sorted(set(ids))


def test_a_clock_that_steps_back_does_not_make_an_id_that_sorts_earlier():
    # given a clock that is far ahead for one id
    with patch("onfile.ids.time.time_ns", side_effect=[2_000_000_000_000_000_000, 1_999_999_999_000_000_000]):
        before, after = new_id(), new_id()

    assert before < after


def test_a_given_time_does_not_move_the_ids_of_the_wall_clock():
    earlier = new_id()
    far_ahead = new_id(now_ms=2**48 - 1)
    later = new_id()

    assert earlier < later < far_ahead


@pytest.mark.parametrize("now_ms", [-1, 2**48])
def test_a_time_that_48_bits_cannot_hold_is_an_error(now_ms):
    with pytest.raises(ValueError, match="48 bits"):
        new_id(now_ms=now_ms)


def test_threads_never_make_one_id_twice():
    # given eight threads that start at once
    made: list[list[str]] = []
    start = threading.Barrier(8)

    def make():
        start.wait()
        made.append([new_id() for _ in range(500)])

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len({one for ids in made for one in ids}) == 8 * 500
    assert all(ids == sorted(ids) for ids in made)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_does_not_repeat_its_parents_ids():
    # given a process that has counted up within one given millisecond, and forks
    forks = (
        "import os; from onfile.ids import new_id; new_id(now_ms=7); child = os.fork();"
        "os.write(1, f'{new_id(now_ms=7)} '.encode()); child and os.waitpid(child, 0)"
    )

    # when parent and child both make the next id
    done = subprocess.run([sys.executable, "-c", forks], capture_output=True, text=True, check=True, timeout=60)

    # then they are two
    assert len(set(done.stdout.split())) == 2
