"""OpenTelemetry: a host that uses it gets span events and metrics; one that does not pays nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from onfile.telemetry.otel import scope_kind

NAMES = [
    f"aviary.agent.memory.{name}" for name in ("resolved", "written", "published", "pinned", "forgotten", "unavailable")
]


def host(opentelemetry: str) -> dict:
    program = Path(__file__).parent / "host.py"
    done = subprocess.run(
        [sys.executable, "-W", "error", str(program), opentelemetry],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def exported() -> dict:
    """What a real SDK handed to its exporters after one turn and a person's acts."""
    return host("sdk")


def test_every_event_is_an_event_of_the_current_span(exported: dict):
    assert [name for name, _ in exported["events"]] == NAMES
    resolved, written, published, pinned, forgotten, unavailable = (attributes for _, attributes in exported["events"])
    assert resolved == {
        "onfile.memory.run": "run_1",
        "onfile.memory.scopes": 3,
        "onfile.memory.offered": 0,
        "onfile.memory.omitted": 0,
        "onfile.memory.pinned_omitted": 0,
        "onfile.memory.recalled": False,
        "onfile.memory.prompt_chars": 0,
    }
    assert written == {"onfile.memory.run": "run_1", "onfile.memory.chars": 6, "onfile.memory.scope_kind": "actor"}
    assert published == {"onfile.memory.chars": 6, "onfile.memory.scope_kind": "other"}
    assert pinned == {"onfile.memory.pinned": True, "onfile.memory.scope_kind": "other"}
    assert forgotten == {"onfile.memory.count": 1, "onfile.memory.scope_kind": "actor"}
    assert unavailable == {
        "onfile.memory.run": "run_1",
        "onfile.memory.act": "offer",
        "onfile.memory.error": "ConnectionError",
    }


def test_every_event_is_counted_and_its_sizes_are_measured(exported: dict):
    points = exported["points"]

    assert {name: [point["times"] for point in points[name]] for name in NAMES} == {name: [1] for name in NAMES}
    for size in ("offered", "omitted", "pinned_omitted", "prompt_chars"):
        assert points[f"aviary.agent.memory.resolved.{size}"] == [{"of": {}, "times": 1}]
    assert points["aviary.agent.memory.written.chars"] == [{"of": {"onfile.memory.scope_kind": "actor"}, "times": 1}]


def test_no_span_and_no_metric_carries_a_key_a_fact_or_a_scope(exported: dict):
    assert "aviary.agent.memory.written" in exported["raw"]
    assert not any(word in json.dumps(exported) for word in ("zanzibar", "4711zz", "4712zz"))


def test_a_run_id_is_in_no_metric_because_each_would_be_a_series_of_its_own(exported: dict):
    assert "run_1" not in json.dumps(exported["points"])


def test_a_host_with_the_api_and_no_sdk_is_served_all_the_same():
    assert "onfile.telemetry.otel" in host("api")["loaded"]


def test_a_host_without_opentelemetry_never_loads_it():
    assert host("none")["loaded"] == []


@pytest.mark.parametrize(
    ("scope", "kind"),
    [
        ("actor:ana", "actor"),
        ("tenant:a:b", "tenant"),
        ("global", "global"),
        ("depot:north", "other"),
        ("ana", "other"),
        ("", "other"),
        ("ACTOR:ana", "other"),
    ],
)
def test_of_a_scope_only_its_kind_leaves_the_process(scope: str, kind: str):
    assert scope_kind(scope) == kind
