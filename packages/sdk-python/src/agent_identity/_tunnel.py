"""A public address for a program: runs `svc tunnel`, the agent's end of the link, as a process of its own."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import threading
from socketserver import ThreadingMixIn
from types import TracebackType
from typing import Any, Callable, Dict, Iterable, List, Sequence, Type, Union
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import anyio.to_thread

from ._errors import AgentIdentityError

WsgiApplication = Callable[[Dict[str, Any], Callable[..., Any]], Iterable[bytes]]
"""A WSGI application (PEP 3333), such as one of Flask or Django."""

TunnelTarget = Union[int, WsgiApplication]

_COMMAND = ("npx", "--yes", "@agent-identity/cli")
_ADDRESS = re.compile(r"^(https?://\S+)  ->  ")
_CLOSING = 10.0
"""Seconds in which the process may end its requests."""


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


class Tunnel:
    """An open tunnel. It is a context manager, which closes it."""

    def __init__(self, url: str, process: subprocess.Popen[str], server: WSGIServer | None) -> None:
        self.url = url
        """The public address."""
        self._process = process
        self._server = server

    def close(self) -> None:
        """Closes the tunnel, and the server of its application."""
        _stop(self._process)
        _shut(self._server)

    def __enter__(self) -> Tunnel:
        return self

    def __exit__(
        self, kind: Type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Tunnel:
        return self

    async def __aexit__(
        self, kind: Type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await anyio.to_thread.run_sync(self.close)


def open_tunnel(
    target: TunnelTarget, handle: str, key: str | None, base_url: str, command: Sequence[str] | None
) -> Tunnel:
    """Opens a tunnel and returns when its address works."""
    words = list(command or _COMMAND)
    program = shutil.which(words[0])
    if program is None:
        raise AgentIdentityError(f"A tunnel needs {words[0]}: install Node.js, or pass `command`")
    server = None if isinstance(target, int) else _serve(target)
    port = target if isinstance(target, int) else server.server_port if server is not None else 0
    try:
        process = subprocess.Popen(
            [program, *words[1:], "tunnel", str(port), "--handle", handle, "--quiet"],
            env={**os.environ, "SVC_API_URL": base_url, **({} if key is None else {"SVC_KEY": key})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=os.name == "posix",
        )
        return Tunnel(_address(process), process, server)
    except BaseException:
        _shut(server)
        raise


def _serve(application: WsgiApplication) -> WSGIServer:
    server = make_server("127.0.0.1", 0, application, server_class=_Server, handler_class=_Quiet)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    return server


def _shut(server: WSGIServer | None) -> None:
    if server is not None:
        server.shutdown()
        server.server_close()


def _address(process: subprocess.Popen[str]) -> str:
    """Returns the address that the command prints first, or raises its error. Reads on, so that the command never waits."""
    errors: List[str] = []
    assert process.stdout is not None and process.stderr is not None
    reader = threading.Thread(target=_collect, args=(process.stderr, errors), daemon=True)
    reader.start()
    for line in process.stdout:
        found = _ADDRESS.match(line)
        if found is not None:
            threading.Thread(target=_collect, args=(process.stdout, []), daemon=True).start()
            return found[1]
    process.wait()
    reader.join()
    raise AgentIdentityError("".join(errors).strip() or f"The tunnel ended with code {process.returncode}")


def _collect(lines: Iterable[str], into: List[str]) -> None:
    for line in lines:
        if len(into) < 100:
            into.append(line)


def _stop(process: subprocess.Popen[str]) -> None:
    """Ends the process and those that it started: `npx` runs the command in a process of its own."""
    if process.poll() is None:
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGTERM)
        else:
            process.terminate()
    try:
        process.wait(_CLOSING)
    except subprocess.TimeoutExpired:
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
