"""A loopback stand-in for the HTTP APIs of two model providers: it remembers one fact, then answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CALL = {"key": "carrier", "fact": "by rail"}
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
        return [_system(sent) for sent in self.sent]

    def answer(self, path: str, sent: dict[str, Any]) -> dict[str, Any]:
        self.sent.append(sent)
        offered = json.dumps(sent.get("tools") or [])
        told = json.dumps(sent.get("messages") or sent.get("input"))
        calls = '"remember"' in offered and "Recorded [" not in told and "Already on file" not in told
        if path.endswith("/chat/completions"):
            return _chat(calls)
        return _responses(calls, sent) if path.endswith("/responses") else _anthropic(calls)


def _system(sent: dict[str, Any]) -> str:
    if "system" in sent:
        return "\n\n".join(part["text"] for part in sent["system"])
    if "instructions" in sent:
        return sent["instructions"]
    contents = [told["content"] for told in sent["messages"] if told["role"] in {"system", "developer"}]
    return "\n\n".join(
        content if isinstance(content, str) else "".join(part["text"] for part in content) for content in contents
    )


def _chat(calls: bool) -> dict[str, Any]:
    function = {"name": "remember", "arguments": json.dumps(CALL)}
    call = {"id": "call_1", "type": "function", "function": function}
    message: dict[str, Any] = {"role": "assistant", "content": None if calls else "Noted."}
    if calls:
        message["tool_calls"] = [call]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    return {
        "id": "chat_1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-5",
        "choices": [choice],
        "usage": USAGE,
    }


def _responses(calls: bool, sent: dict[str, Any]) -> dict[str, Any]:
    text = {"type": "output_text", "text": "Noted.", "annotations": []}
    said = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}
    call = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "remember",
        "arguments": json.dumps(CALL),
        "status": "completed",
    }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-5",
        "status": "completed",
        "output": [call if calls else said],
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


def _anthropic(calls: bool) -> dict[str, Any]:
    call = {"type": "tool_use", "id": "toolu_1", "name": "remember", "input": CALL}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [call if calls else {"type": "text", "text": "Noted."}],
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


@contextmanager
def fake_api() -> Iterator[FakeAPI]:
    api = FakeAPI()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body = json.dumps(api.answer(self.path.partition("?")[0], sent)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    api.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
