"""A Messages API on the loopback address that answers with a script instead of a model.

It drives a real client through a list of turns: each is a list of content blocks, such as a call of a tool. What the
client sends is kept. When the script is over, every answer is ``done``.
"""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

Block = dict[str, Any]
DONE: list[Block] = [{"type": "text", "text": "done"}]


@dataclass(kw_only=True)
class Mock:
    """Where it listens, the turns still to come, and the requests so far."""

    url: str
    turns: list[list[Block]]
    requests: list[dict[str, Any]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, request: dict[str, Any]) -> list[Block]:
        """The next turn; requests without tools (titles, warm-ups) take none."""
        with self.lock:
            self.requests.append(request)
            return self.turns.pop(0) if request.get("tools") and self.turns else DONE


@contextmanager
def scripted(turns: list[list[Block]]) -> Iterator[Mock]:
    """A mock that lives as long as the block."""
    mock = Mock(url="", turns=list(turns))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def reply(self, body: bytes, kind: str = "application/json") -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_HEAD(self) -> None:
            self.reply(b"")

        def do_GET(self) -> None:
            self.reply(b"{}")

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
            if "count_tokens" in self.path:
                self.reply(b'{"input_tokens": 1}')
                return
            blocks = mock.answer(request)
            message = message_of(request, len(mock.requests))
            if request.get("stream"):
                self.reply(stream(message, blocks).encode(), "text/event-stream")
            else:
                done = {"content": numbered(message, blocks), "stop_reason": stop_reason(blocks)}
                self.reply(json.dumps({**message, **done}).encode())

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    mock.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield mock
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def message_of(request: dict[str, Any], number: int) -> dict[str, Any]:
    """The head of an answer."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": request.get("model", "m"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }


def stop_reason(blocks: list[Block]) -> str:
    """Why the answer ends."""
    return "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"


def numbered(message: dict[str, Any], blocks: list[Block]) -> list[Block]:
    """Blocks with an id for every call."""
    return [
        {**block, "id": f"toolu_{message['id']}_{at}"} if block["type"] == "tool_use" else block
        for at, block in enumerate(blocks)
    ]


def stream(message: dict[str, Any], blocks: list[Block]) -> str:
    """The answer as server-sent events."""
    events: list[tuple[str, dict[str, Any]]] = [("message_start", {"message": message})]
    for at, block in enumerate(numbered(message, blocks)):
        if block["type"] == "text":
            start, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            start = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events += [
            ("content_block_start", {"index": at, "content_block": start}),
            ("content_block_delta", {"index": at, "delta": delta}),
            ("content_block_stop", {"index": at}),
        ]
    ending = {"delta": {"stop_reason": stop_reason(blocks), "stop_sequence": None}, "usage": {"output_tokens": 1}}
    events += [("message_delta", ending), ("message_stop", {})]
    return "".join(f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n" for name, data in events)
