"""What the tests of the Python SDK share: the service of this run, and connections that fail as a test wants."""

from __future__ import annotations

import json
import os
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Dict, Iterator, List, Tuple, Type

import httpx

from agent_identity import Client

BASE = os.environ["SVC_API_URL"]
SESSION = os.environ["SVC_KEY"]

Answer = Callable[[httpx.Request], httpx.Response]


def refused(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("refused", request=request)


def busy(request: httpx.Request) -> httpx.Response:
    return httpx.Response(503, headers={"retry-after": "0"}, request=request)


class Failing(httpx.BaseTransport):
    """Answers the first requests itself and passes on the others. Keeps the headers of all."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self._real = httpx.HTTPTransport()
        self.seen: List[httpx.Headers] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(request.headers)
        if self._answers:
            return self._answers.pop(0)(request)
        return self._real.handle_request(request)

    def close(self) -> None:
        self._real.close()


COMMAND = os.environ["SVC_COMMAND"].split(" ")
"""The command line of `svc` from this checkout."""


def application(environ: Dict[str, Any], start_response: Callable[..., Any]) -> List[bytes]:
    start_response("200 OK", [("content-type", "text/plain")])
    return [f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}".encode()]


def public(url: str, path: str) -> str:
    """Reads a public address as the Internet would. Its name resolves to this machine."""
    address = httpx.URL(url)
    here = f"http://127.0.0.1:{address.port}{path}"
    return httpx.get(here, headers={"host": address.netloc.decode()}).text


class Site(BaseHTTPRequestHandler):
    """A site that redirects `/moved`, and keeps path, signature and digest of each request."""

    seen: List[Tuple[str, str, str]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.seen.append((self.path, self.headers["signature"], self.headers["content-digest"]))
        self.send_response(307 if self.path == "/moved" else 200)
        self.send_header("location", "/there")
        self.end_headers()
        if self.path != "/moved":
            self.wfile.write(json.dumps({"method": "POST", "body": body.decode()}).encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def client_with(transport: httpx.BaseTransport, **settings: Any) -> Iterator[Client]:
    with httpx.Client(transport=transport) as http, Client(http_client=http, **settings) as client:
        yield client


@contextmanager
def server(handler: Type[BaseHTTPRequestHandler]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.server_address[1]}"
        finally:
            listening.shutdown()
            thread.join()


def eventually(ready: Callable[[], Any]) -> Any:
    """Returns the first value that is not empty."""
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        value = ready()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError("The condition did not hold within 60 s")


class Receiver(BaseHTTPRequestHandler):
    """Keeps the deliveries that arrive."""

    got: List[Dict[str, Any]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.got.append({"headers": dict(self.headers.items()), "body": body})
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass
