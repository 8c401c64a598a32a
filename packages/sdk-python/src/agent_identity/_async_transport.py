"""Sends calls: repeats what is safe to repeat, follows pages, and keeps a stream of Events open."""

from __future__ import annotations

import json
import time
from contextlib import asynccontextmanager
from typing import Any, AsyncGenerator, AsyncIterator, Dict, List, Mapping, TypeVar, cast

import anyio
import httpx

from . import types as t
from ._attempts import Attempts, problem_of
from ._errors import ApiError, api_error
from ._frames import FrameParser
from ._request import RequestOptions, Request, Settings, Spec, request_of

T = TypeVar("T")

_SILENCE = 60.0
"""Seconds without a byte after which a stream is lost. The service sends a comment every 15 seconds."""

_DECODED = ("content-encoding", "content-length", "transfer-encoding")
"""Headers that no longer describe a body that was read."""


class AsyncTransport:
    def __init__(self, settings: Settings, http_client: httpx.AsyncClient | None) -> None:
        self.settings = settings
        self._is_own = http_client is None
        self._http = http_client or httpx.AsyncClient(follow_redirects=True)

    @property
    def http(self) -> httpx.AsyncClient:
        return self._http

    async def close(self) -> None:
        """Closes the connections, unless the caller brought the HTTP client."""
        if self._is_own:
            await self._http.aclose()

    async def send(self, request: Request, options: RequestOptions | None = None) -> httpx.Response:
        attempts = Attempts(self.settings, request, options or {})
        while True:
            attempts.begin()
            try:
                response = await self._attempt(request, attempts)
            except httpx.TransportError as cause:
                attempts.end(None, cause)
                seconds = attempts.after_failure(cause)
            else:
                attempts.end(response)
                if response.is_success:
                    return response
                seconds = attempts.after_refusal(response)
            await anyio.sleep(seconds)

    async def call(self, spec: Spec[T], values: Mapping[str, object], options: RequestOptions | None) -> T:
        response = await self.send(request_of(spec, values), options)
        if spec.raw:
            return cast(T, response)
        return cast(T, json.loads(response.content) if response.content else None)

    async def pages(
        self, spec: Spec[Any], values: Mapping[str, object], options: RequestOptions | None
    ) -> AsyncIterator[Any]:
        """Yields the entries of all pages. The next page is read when its first entry is needed."""
        given: Dict[str, object] = dict(values)
        while True:
            page = await self.call(spec, given, options)
            for entry in page[spec.entries]:
                yield entry
            if page.get(spec.cursor) is None:
                return
            given["cursor"] = page[spec.cursor]

    async def events(self, path: str, after: str | None) -> AsyncGenerator[t.Event, None]:
        """Yields Events as they happen, and continues after the last one when the connection is lost.

        The next Event is read when the caller asks for it, so a slow caller slows the stream. Raises an `ApiError` if the
        service refuses the stream permanently.
        """
        last = after
        failures = 0
        while True:
            try:
                async with self._open(path, last) as response:
                    parser = FrameParser()
                    async for chunk in response.aiter_bytes():
                        for frame in parser.feed(chunk):
                            # The first frame has an id and no data: the position at which the stream begins.
                            last = frame.id or last
                            if not frame.data:
                                continue
                            failures = 0
                            yield cast(t.Event, json.loads(frame.data))
            except ApiError as error:
                if error.agent_hint != "wait":
                    raise
            except httpx.TransportError:
                pass
            await anyio.sleep(min(0.25 * 2.0**failures, 10.0))
            failures += 1

    @asynccontextmanager
    async def _open(self, path: str, last: str | None) -> AsyncIterator[httpx.Response]:
        headers = {**Request("GET", path).headers(self.settings), "accept": "text/event-stream"}
        if last is not None:
            headers["last-event-id"] = last
        timeout = httpx.Timeout(self.settings.timeout, read=_SILENCE)
        async with self._http.stream("GET", self.settings.base_url + path, headers=headers, timeout=timeout) as response:
            if not response.is_success:
                content = b"".join([chunk async for chunk in response.aiter_bytes()])
                raise api_error(response.status_code, problem_of(httpx.Response(response.status_code, content=content)))
            yield response

    async def _attempt(self, request: Request, attempts: Attempts) -> httpx.Response:
        """Returns the response with its body. A body that trickles in fails after the timeout, too."""
        ends = time.monotonic() + attempts.timeout
        chunks: List[bytes] = []
        async with self._http.stream(
            request.method,
            self.settings.base_url + request.path,
            content=request.content,
            headers=attempts.headers,
            timeout=attempts.timeout,
        ) as response:
            async for chunk in response.aiter_bytes():
                chunks.append(chunk)
                if time.monotonic() > ends:
                    raise httpx.ReadTimeout("The body took too long", request=response.request)
        headers = [(name, value) for name, value in response.headers.multi_items() if name not in _DECODED]
        return httpx.Response(
            response.status_code, headers=headers, content=b"".join(chunks), request=response.request
        )


class AsyncGroup:
    """A group of calls; `handle` is the Identity of a group that belongs to one."""

    def __init__(self, transport: AsyncTransport, handle: str) -> None:
        self._transport = transport
        self._handle = handle

    async def _call(self, spec: Spec[T], values: Mapping[str, object], options: RequestOptions | None) -> T:
        return await self._transport.call(spec, values, options)

    def _iterate(
        self, spec: Spec[Any], values: Mapping[str, object], options: RequestOptions | None
    ) -> AsyncIterator[Any]:
        return self._transport.pages(spec, values, options)
