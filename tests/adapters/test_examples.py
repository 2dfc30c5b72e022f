"""Every example of docs/adapters.md is a program in examples/, and runs as it stands."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import httpx
import pytest

from .fake_api import FakeAPI, fake_api, published

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
PAGE = (EXAMPLES.parent / "docs" / "adapters.md").read_text("utf-8")
ANA, BO = {"X-Session": "session-of-ana"}, {"X-Session": "session-of-bo"}


def installed(*packages: str) -> None:
    """Skip one test, visibly, where a framework is absent; in CI fail."""
    absent = [package for package in packages if find_spec(package) is None]
    if absent and os.environ.get("CI") == "true":
        pytest.fail(f"{absent} missing, and .ci/run should have installed it", pytrace=False)
    if absent:
        pytest.skip(f"{', '.join(absent)} is not installed here")


def run(name: str, *arguments: str, folder: Path, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


def imported(name: str) -> Any:
    spec = spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec and spec.loader
    module = module_from_spec(spec)
    sys.modules[name] = module  # a dataclass and Django's URLs look themselves up
    spec.loader.exec_module(module)
    return module


def test_the_page_shows_each_example_as_it_is():
    shown = re.findall(r"^<!-- examples/(\w+)\.py -->\n```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)

    assert len(shown) == PAGE.count("```python") >= 9
    for name, code in shown:
        assert code == (EXAMPLES / f"{name}.py").read_text("utf-8"), name
    # and what is shown is run, by a test below
    assert {name for name, _ in shown} <= set(re.findall(r'"(\w+)"', Path(__file__).read_text("utf-8")))


@pytest.mark.parametrize(
    ("name", "needed"),
    [
        ("openai_client", ["openai"]),
        ("anthropic_client", ["anthropic"]),
        ("pydantic_ai_agent", ["pydantic_ai", "openai"]),
        ("langchain_agent", ["langchain", "langchain_openai"]),
        ("openai_agents_agent", ["agents"]),
        ("agent_framework_agent", ["agent_framework", "agent_framework_openai"]),
    ],
)
def test_an_assistant_of_the_page_remembers_in_one_run_and_knows_in_the_next(
    name: str, needed: list[str], tmp_path: Path
):
    # given a stand-in for the provider's API, which calls `remember` once
    installed(*needed)
    with fake_api() as api:
        # when the program runs twice
        for _ in range(2):
            assert run(name, folder=tmp_path, environment=api.environment()) == "Noted.\n"

    # then both calls of a run read the same bytes, and only the second run's hold the fact
    first, after, second, _ = api.systems()
    assert first == after and "by rail" not in first
    assert second.startswith("You are the assistant of a freight company.\n\n<memory>")
    assert "[actor:ana] carrier: by rail" in second
    _holds_the_result(api)


def _holds_the_result(api: FakeAPI) -> None:
    assert "Recorded [actor:ana] carrier: by rail. It replaced nothing." in json.dumps(api.sent[1])


def test_anthropic_s_cache_mark_stands_after_the_part_that_is_the_same_for_everybody(tmp_path: Path):
    installed("anthropic")
    with fake_api() as api:
        for _ in range(2):
            run("anthropic_client", folder=tmp_path, environment=api.environment())

    base, block = api.sent[2]["system"]
    assert base["cache_control"] == {"type": "ephemeral"} and "<memory>" not in base["text"]
    assert "cache_control" not in block and block["text"].startswith("<memory>")
    assert api.sent[0]["tools"][0]["input_schema"]["required"] == ["key", "fact"]


def test_the_store_of_the_page_puts_and_finds(tmp_path: Path):
    installed("langgraph")

    assert run("scoped_store", folder=tmp_path) == "('actor=3Aana',) carrier by rail\n"


async def test_the_starlette_application_of_the_page_knows_who_is_signed_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    example = imported("starlette_app")
    transport = httpx.ASGITransport(example.app)
    async with (
        example.lifespan(example.app),
        httpx.AsyncClient(transport=transport, base_url="http://host") as client,
    ):
        assert (await client.get("/agent/memories")).status_code == 401
        assert (await client.get("/agent/memories", headers=ANA)).json() == []


def test_the_flask_application_of_the_page_knows_who_is_signed_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    installed("flask")
    monkeypatch.chdir(tmp_path)
    example = imported("flask_app")
    with example.memory as memory:
        from onfile import Actor, ScopeContext

        ctx = ScopeContext(actor=Actor(id="ana"))
        memory.publish(scope="actor:ana", key="lunch", text="lentils", ctx=ctx)
        client = example.app.test_client()

        assert client.get("/agent/memories").status_code == 401
        assert [entry["text"] for entry in client.get("/agent/memories", headers=ANA).get_json()] == ["lentils"]
        assert client.get("/agent/memories", headers=BO).get_json() == []


def test_the_django_site_of_the_page_migrates_and_serves(tmp_path: Path):
    installed("django")
    run("django_site", "migrate", "--verbosity", "0", folder=tmp_path)
    asked = (
        "import sys; sys.argv = ['django_site.py']; sys.path.insert(0, sys.argv.pop() and "
        + repr(str(EXAMPLES))
        + ")\n"
        "import django_site, django; django.setup()\n"
        "from django.test import Client\n"
        "client = Client(headers={'host': 'localhost'})\n"
        "print(client.get('/agent/memories').status_code,"
        " client.get('/agent/memories', headers={'X-Session': 'session-of-ana'}).json())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", asked], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )

    assert done.stdout == "401 []\n", done.stderr


async def test_the_mcp_server_of_the_page_serves_whom_a_published_key_verifies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # given a sign-in that publishes its key, and the example as it stands
    installed("fastmcp")
    from fastmcp import Client
    from fastmcp.server.auth.providers.jwt import RSAKeyPair
    from joserfc.jwk import RSAKey

    from .test_mcp import called, listening, status, told

    pair = RSAKeyPair.generate()
    key = {**RSAKey.import_key(pair.public_key).as_dict(), "kid": "k1", "use": "sig", "alg": "RS256"}
    monkeypatch.chdir(tmp_path)
    with published(json.dumps({"keys": [key]}).encode()) as address:
        monkeypatch.setenv("JWKS_URL", address)
        example = imported("mcp_server")
        await example.memory.provider.setup()

        def token(audience: str = "onfile") -> str:
            names = {"issuer": "https://login.example.com", "audience": audience}
            return pair.create_token(subject="ana", additional_claims={"org": "acme"}, kid="k1", **names)

        # when a client uses it with a token of hers
        async with listening(example.server) as url:
            async with Client(url, auth=token()) as client:
                ok, message = await called(client, "remember", key="carrier", fact="by rail")
                assert "[actor:ana] carrier: by rail" in await told(client)

            # then a token for another service does not get in
            assert await status(url, token("payroll")) == 401
    assert ok and message.startswith("Recorded [actor:ana]")
    await example.memory.provider.aclose()


async def test_the_ag_ui_application_of_the_page_gives_each_person_their_own_deps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # given the application, with a model that says what it was told
    installed("pydantic_ai", "ag_ui")
    from pydantic_ai.models.function import FunctionModel

    async def stream(messages: Any, info: Any) -> Any:
        yield info.instructions or "nothing"

    monkeypatch.chdir(tmp_path)
    with fake_api() as api:
        for name, value in api.environment().items():
            monkeypatch.setenv(name, value)
        example = imported("ag_ui_app")
    from onfile import Actor, ScopeContext

    sent = {
        "threadId": "t1",
        "runId": "r1",
        "messages": [{"id": "m1", "role": "user", "content": "hi"}],
        "state": {},
        "tools": [],
        "context": [],
        "forwardedProps": {},
    }
    transport = httpx.ASGITransport(example.app)
    async with (
        example.lifespan(example.app),
        httpx.AsyncClient(transport=transport, base_url="http://host") as client,
    ):
        ctx = ScopeContext(actor=Actor(id="ana"))
        await example.capability.memory.publish(scope="actor:ana", key="lunch", text="lentils", ctx=ctx)

        # when two people chat
        with example.agent.override(model=FunctionModel(stream_function=stream)):
            anas = (await client.post("/chat", json=sent, headers=ANA)).text
            bos = (await client.post("/chat", json=sent, headers=BO)).text
            nobodys = await client.post("/chat", json=sent)

    # then only Ana's assistant knows of her lunch
    assert "lentils" in anas and "lentils" not in bos
    assert nobodys.status_code == 401
