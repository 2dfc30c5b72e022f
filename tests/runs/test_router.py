"""A person sees a run of theirs over HTTP and decides what it waits for; nobody else does."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import Annotated

import httpx
import pytest
from fastapi import FastAPI, Header

from onfile.http.runs import runs_router
from onfile.records import Actor
from onfile.runs.assistant import Assistant
from onfile.runs.inline import InlineJournal
from onfile.runs.runner import TurnRunner
from onfile.runs.tools import action_tool
from onfile.skills import CodeSkills, skill
from tests.runs.script import CTX, Script, call

ANA, BO = {"x-user": "ana acme"}, {"x-user": "bo acme"}
DECISION = "/agent/runs/r1/tool-calls/c1/decision"


@action_tool
def ship(order: str) -> str:
    """Ship an order."""
    return f"shipped {order}"


@skill(scope="tenant:acme")
def label_a_pallet() -> str:
    """How pallets are labelled."""
    return "Print two labels."


async def signed_in(x_user: Annotated[str | None, Header()] = None) -> Actor | None:
    if x_user is None:
        return None
    name, tenant = x_user.split()
    return Actor(id=name, tenant_ref=tenant)


@asynccontextmanager
async def opened(*steps, run_id="r1", **options):
    script = Script(steps or [[call("ship", order="o1")], "Done."])
    assistant = Assistant(model=script.model(), tools=[ship], asks=True, skills=[CodeSkills(label_a_pallet)])
    runner = TurnRunner(assistant, InlineJournal())
    await runner.start("hello", ctx=CTX, run_id=run_id)
    app = FastAPI()
    app.include_router(runs_router(runner, actor=signed_in, **options))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://onfile.test") as http:
        yield http


async def test_a_person_sees_what_their_run_waits_for_and_approves_it():
    async with opened() as http:
        seen = await http.get("/agent/runs/r1", headers=ANA)
        decided = await http.post(DECISION, headers=ANA, json={"approved": True})
        after = await http.get("/agent/runs/r1", headers=ANA)

    assert seen.json() == {
        "id": "r1",
        "status": "waiting",
        "text": "",
        "pending": {"toolCallId": "c1", "kind": "approval", "tool": "ship", "arguments": {"order": "o1"}},
    }
    assert (decided.status_code, decided.json()) == (200, {"decided": True})
    assert after.json() == {"id": "r1", "status": "done", "text": "Done.", "pending": None}
    assert seen.headers["cache-control"] == "no-store"


async def test_the_first_answer_wins_and_a_second_gets_409():
    async with opened(resume=False) as http:
        first = await http.post(DECISION, headers=ANA, json={"approved": False})
        second = await http.post(DECISION, headers=ANA, json={"approved": True})

    assert (first.status_code, second.status_code) == (200, 409)


async def test_a_second_answer_after_the_run_went_on_gets_409_too():
    async with opened() as http:
        await http.post(DECISION, headers=ANA, json={"approved": True})
        second = await http.post(DECISION, headers=ANA, json={"approved": True})

    assert second.status_code == 409


async def test_another_persons_run_is_as_missing_as_one_that_does_not_exist():
    async with opened() as http:
        theirs = await http.get("/agent/runs/r1", headers=BO)
        missing = await http.get("/agent/runs/r9", headers=BO)
        decided = await http.post(DECISION, headers=BO, json={"approved": True})

    assert (theirs.status_code, theirs.content) == (404, missing.content)
    assert (decided.status_code, decided.content) == (404, missing.content)


async def test_whom_the_host_allows_may_decide_it():
    async with opened(allows=lambda actor, run: actor.id == "bo" and run.ctx.actor.tenant_ref == "acme") as http:
        decided = await http.post(DECISION, headers=BO, json={"approved": True})

    assert decided.status_code == 200


async def test_nobody_who_is_not_signed_in_sees_anything():
    async with opened() as http:
        answers = [
            await http.get("/agent/runs/r1"),
            await http.post(DECISION, json={"approved": True}),
            await http.get("/agent/skills"),
        ]

    assert [answer.status_code for answer in answers] == [401, 401, 401]


async def test_a_sign_in_that_answers_no_actor_is_a_fault_of_the_host_and_shows_nothing():
    app = FastAPI()
    script = Script(["Hello."])
    runner = TurnRunner(Assistant(model=script.model()), InlineJournal())
    await runner.start("hello", ctx=CTX, run_id="r1")
    app.include_router(runs_router(runner, actor=lambda: {"id": "ana"}))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://onfile.test") as http:
        answers = [await http.get("/agent/runs/r1"), await http.get("/agent/skills")]

    assert [answer.status_code for answer in answers] == [500, 500]
    assert "ana" not in answers[0].text


async def test_a_call_that_waits_for_nobody_is_missing():
    async with opened() as http:
        answer = await http.post("/agent/runs/r1/tool-calls/c9/decision", headers=ANA, json={"approved": True})

    assert answer.status_code == 404


@pytest.mark.parametrize("body", [{}, {"answers": ["yes"]}, {"approved": True, "scope": "global"}])
async def test_what_is_no_decision_is_refused_and_decides_nothing(body):
    async with opened() as http:
        refused = await http.post(DECISION, headers=ANA, json=body)
        seen = await http.get("/agent/runs/r1", headers=ANA)

    assert refused.status_code == 422
    assert seen.json()["status"] == "waiting"


async def test_questions_are_answered_or_skipped():
    asked = call("ask", questions=[{"question": "Which depot?", "default": "north"}])
    async with opened([asked], "Thanks.") as http:
        no_answer = await http.post(DECISION, headers=ANA, json={"approved": True})
        answered = await http.post(DECISION, headers=ANA, json={"answers": None})
        after = await http.get("/agent/runs/r1", headers=ANA)

    assert (no_answer.status_code, answered.status_code, after.json()["text"]) == (422, 200, "Thanks.")


async def test_a_person_reads_which_skills_they_are_offered():
    async with opened() as http:
        mine = await http.get("/agent/skills", headers=ANA)
        elsewhere = await http.get("/agent/skills", headers={"x-user": "cy other"})

    assert mine.json() == [
        {"name": "label-a-pallet", "description": "How pallets are labelled.", "scope": "tenant:acme", "beats": []}
    ]
    assert elsewhere.json() == []


def test_nothing_in_a_request_can_say_who_is_calling():
    app = FastAPI()
    app.include_router(runs_router(TurnRunner(Assistant(model="test"), InlineJournal()), actor=signed_in))

    parameters = [
        one["name"] for path in app.openapi()["paths"].values() for act in path.values() for one in act["parameters"]
    ]

    assert set(parameters) == {"run_id", "tool_call_id", "threadId", "x-user"}


async def test_an_id_with_slashes_is_an_id():
    async with opened([call("ship", "functions/ship 0", order="o1")], "Done.", run_id="host/42") as http:
        seen = await http.get("/agent/runs/host%2F42", headers=ANA)
        url = "/agent/runs/host%2F42/tool-calls/functions%2Fship%200/decision"
        decided = await http.post(url, headers=ANA, json={"approved": True})
        after = await http.get("/agent/runs/host%2F42", headers=ANA)

    assert seen.json()["pending"]["toolCallId"] == "functions/ship 0"
    assert decided.status_code == 200
    assert after.json()["status"] == "done"


async def test_a_turn_that_fails_once_it_was_decided_is_logged_without_the_words(caplog):
    async with opened([call("ship", order="o1")], RuntimeError("what ana said")) as http:
        decided = await http.post(DECISION, headers=ANA, json={"approved": True})
        after = await http.get("/agent/runs/r1", headers=ANA)

    assert decided.status_code == 200
    assert after.json()["status"] == "failed"
    assert "RuntimeError" in caplog.text
    assert "what ana said" not in caplog.text
