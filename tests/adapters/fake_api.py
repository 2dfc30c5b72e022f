"""A loopback stand-in for the HTTP APIs of two model providers: it remembers one fact, then answers.

Or it says the lines of a script.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from .scripts import Step, remember

USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


class FakeAPI:
    """What it was sent, in order."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.url = ""

    def environment(self) -> dict[str, str]:
        return {
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "OPENAI_API_KEY": "none",
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": "none",
            "OPENAI_AGENTS_DISABLE_TRACING": "1",
            "LANGSMITH_TRACING": "false",
        }

    def systems(self) -> list[str]:
        """Per request, all that stood before the conversation."""
        return [system_of(sent) for sent in self.sent]

    def answer(self, path: str, sent: dict[str, Any]) -> dict[str, Any]:
        self.sent.append(sent)
        step = self.step(sent)
        if path.endswith("/chat/completions"):
            return _chat(step)
        return _responses(step, sent) if path.endswith("/responses") else _anthropic(step)

    def step(self, sent: dict[str, Any]) -> Step:
        """Answer what the model says next."""
        offered = json.dumps(sent.get("tools") or [])
        told = json.dumps(sent.get("messages") or sent.get("input"))
        calls = '"remember"' in offered and "Recorded [" not in told and "Already on file" not in told
        return [remember("carrier", "by rail", id="call_1")] if calls else "Noted."


def system_of(sent: dict[str, Any]) -> str:
    if "system" in sent:
        return "\n\n".join(part["text"] for part in sent["system"])
    if "instructions" in sent:
        return sent["instructions"]
    contents = [told["content"] for told in sent["messages"] if told["role"] in {"system", "developer"}]
    return "\n\n".join(
        content if isinstance(content, str) else "".join(part["text"] for part in content) for content in contents
    )


def _chat(step: Step) -> dict[str, Any]:
    said = isinstance(step, str)
    message: dict[str, Any] = {"role": "assistant", "content": step if said else None}
    if not said:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _json(call.arguments)}}
            for call in step
        ]
    choice = {"index": 0, "message": message, "finish_reason": "stop" if said else "tool_calls"}
    return {
        "id": "chat_1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-5",
        "choices": [choice],
        "usage": USAGE,
    }


def _responses(step: Step, sent: dict[str, Any]) -> dict[str, Any]:
    output: list[dict[str, Any]]
    if isinstance(step, str):
        text = {"type": "output_text", "text": step, "annotations": []}
        output = [{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}]
    else:
        output = [
            {
                "type": "function_call",
                "id": f"fc_{call.id}",
                "call_id": call.id,
                "name": call.name,
                "arguments": _json(call.arguments),
                "status": "completed",
            }
            for call in step
        ]
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-5",
        "status": "completed",
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": sent.get("tools") or [],
        "usage": {
            "input_tokens": 1,
            "output_tokens": 1,
            "total_tokens": 2,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def _anthropic(step: Step) -> dict[str, Any]:
    said = isinstance(step, str)
    content = (
        [{"type": "text", "text": step}]
        if said
        else [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments} for call in step]
    )
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": content,
        "stop_reason": "end_turn" if said else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def _json(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """A loopback server of the standard library's, by its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Quiet(BaseHTTPRequestHandler):
    """Answers JSON and writes no log."""

    protocol_version = "HTTP/1.1"

    def answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        return


@contextmanager
def published(body: bytes) -> Iterator[str]:
    """A document that anybody can get, by its address."""

    class Handler(Quiet):
        def do_GET(self) -> None:
            self.answer(body)

    with serving(Handler) as address:
        yield address


@contextmanager
def fake_api(api: FakeAPI | None = None) -> Iterator[FakeAPI]:
    api = api or FakeAPI()

    class Handler(Quiet):
        def do_POST(self) -> None:
            sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.answer(json.dumps(api.answer(self.path.partition("?")[0], sent)).encode())

    with serving(Handler) as api.url:
        yield api
