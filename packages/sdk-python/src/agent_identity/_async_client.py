"""The client: one method per call of the API, with waiting, the live stream and sign-in."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime
from types import TracebackType
from typing import Any, AsyncGenerator, Callable, Mapping, Sequence, Type
from urllib.parse import quote

import anyio
import anyio.to_thread
import httpx

from . import _calls, types as t
from ._async_api import AsyncApi, AsyncIdentityApi
from ._async_transport import AsyncTransport
from ._errors import AgentIdentityError, ApiConnectionError, ApiError
from ._request import NOT_GIVEN, Attempt, RequestOptions, NotGiven, Settings, content_digest
from ._tunnel import Tunnel, TunnelTarget, open_tunnel
from ._version import API_VERSION

_POLL_SECONDS = 0.25
_REDIRECTS = 20
"""The most redirects of one request, as in browsers."""
_LONGEST_WAIT = 60
"""The longest wait of one call, in seconds."""
_SLOWEST_POLL = 60
"""The longest interval in seconds between polls of a sign-in while the service is unreachable."""


class AsyncIdentity(AsyncIdentityApi):
    """One Identity: its methods need no `handle`."""

    def __init__(self, transport: AsyncTransport, handle: str) -> None:
        super().__init__(transport, handle)
        self.handle = handle
        self.send = self.sending.send
        """Sends a message."""
        self._transport = transport

    async def reply(
        self,
        message: str | Mapping[str, Any] | t.Message | t.MessageSummary | t.ThreadMessage,
        *,
        text: str | NotGiven = NOT_GIVEN,
        html: str | NotGiven = NOT_GIVEN,
        reply_all: bool | NotGiven = NOT_GIVEN,
        subject: str | NotGiven = NOT_GIVEN,
        to: Sequence[str] | NotGiven = NOT_GIVEN,
        cc: Sequence[str] | NotGiven = NOT_GIVEN,
        bcc: Sequence[str] | NotGiven = NOT_GIVEN,
        attachments: Sequence[t.OutgoingAttachment] | NotGiven = NOT_GIVEN,
        headers: Mapping[str, str] | NotGiven = NOT_GIVEN,
        request_options: RequestOptions | None = None,
    ) -> t.SentMail:
        """Replies to a message or to the message with this id: recipients, subject and thread are those of the message."""
        return await self.sending.send(
            reply_to_message=message if isinstance(message, str) else message["id"],
            text=text,
            html=html,
            reply_all=reply_all,
            subject=subject,
            to=to,
            cc=cc,
            bcc=bcc,
            attachments=attachments,
            headers=headers,
            request_options=request_options,
        )

    async def wait_for_message(
        self,
        *,
        query: str | NotGiven = NOT_GIVEN,
        from_: str | NotGiven = NOT_GIVEN,
        tag: str | NotGiven = NOT_GIVEN,
        thread_id: str | NotGiven = NOT_GIVEN,
        after: str | NotGiven = NOT_GIVEN,
        timeout_seconds: float = 300,
    ) -> t.Message | None:
        """Waits for a message and returns it whole, or None if none arrived in time."""
        ends = time.monotonic() + timeout_seconds
        while True:
            left = ends - time.monotonic()
            if left <= 0:
                return None
            found = await self.messages.wait(
                seconds=min(max(round(left), 1), _LONGEST_WAIT),
                query=query,
                from_=from_,
                tag=tag,
                thread_id=thread_id,
                after=after,
            )
            for message in found["messages"]:
                return await self.messages.read(message["id"])
            after = found["after"] or after

    async def fetch(
        self,
        url: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        content: bytes | str | None = None,
        data: Mapping[str, str] | None = None,
        json: Any = None,
        follow_redirects: bool = True,
        timeout: float | None = None,
    ) -> httpx.Response:
        """Sends a web request that is signed as this Identity, so that the site knows the agent (Web Bot Auth).

        The signature covers method, address and body. Redirects are followed here, because the request to each address has
        its own signature. The arguments are those of `httpx`; the service never sees the headers and the body.
        """
        http = self._transport.http
        request = http.build_request(
            method,
            url,
            headers=headers,
            params=params,
            content=content,
            data=data,
            json=json,
            timeout=self._transport.settings.timeout if timeout is None else timeout,
        )
        for _ in range(_REDIRECTS + 1):
            body = await request.aread()
            digest: str | NotGiven = content_digest(body) if body else NOT_GIVEN
            request.headers.pop("content-digest", None)
            signed = await self.proof.create_signature(
                method=request.method, url=str(request.url), content_digest=digest
            )
            request.headers.update(signed["headers"])
            response = await http.send(request, follow_redirects=False)
            if not follow_redirects or response.next_request is None:
                return response
            await response.aclose()
            request = response.next_request
        raise httpx.TooManyRedirects(f"{url} redirects too often", request=request)

    async def tunnel(self, target: TunnelTarget, *, command: Sequence[str] | None = None) -> Tunnel:
        """Gives a local port or a WSGI application the public address of the Identity, and returns when the address works.

        The tunnel is a context manager. It runs `svc tunnel` of the npm package `@agent-identity/cli`, so it needs Node.js.

        Args:
            target: The port of a local server, or a WSGI application, such as one of Flask or Django.
            command: The command line of `svc`; by default `npx --yes @agent-identity/cli`.
        """
        settings = self._transport.settings
        return await anyio.to_thread.run_sync(
            open_tunnel, target, self.handle, settings.key, settings.base_url, command
        )

    def stream(self, *, after: str | None = None) -> AsyncGenerator[t.Event, None]:
        """Yields the Identity's Events as they happen, beginning after the Event with the id `after`, or with the next one."""
        return self._transport.events(f"/api/identities/{quote(self.handle, safe='')}/events/stream", after)


class AsyncClient(AsyncApi):
    """The client of the service. Nothing is sent before the first call.

    Args:
        key: An Admin Key, an Identity Key or a session token. Defaults to the environment variable `SVC_KEY`.
        base_url: The address of the service. Defaults to `SVC_API_URL`, then `http://localhost:8080`.
        retries: How often a call is repeated that fails temporarily.
        timeout: Seconds after which an attempt without a response fails; calls that wait get more.
        http_client: The `httpx.AsyncClient` to use, for example with a proxy. You close it yourself.
        api_version: The version of the API. Defaults to the one that the types of this package describe.
        app_info: The name and version of your program, for the logs of the service: `my-agent/1.2`.
        on_attempt: Is called after each attempt of a call, for metrics. The logger `agent_identity` logs attempts at DEBUG.
    """

    def __init__(
        self,
        key: str | None = None,
        base_url: str | None = None,
        *,
        retries: int = 3,
        timeout: float = 30,
        http_client: httpx.AsyncClient | None = None,
        api_version: str | None = None,
        app_info: str | None = None,
        on_attempt: Callable[[Attempt], None] | None = None,
    ) -> None:
        settings = replace(
            Settings.of(key, base_url, retries, timeout),
            api_version=api_version or API_VERSION,
            app_info=app_info,
            on_attempt=on_attempt,
        )
        self._transport = AsyncTransport(settings, http_client)
        self.base_url = settings.base_url
        super().__init__(self._transport)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: Type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections."""
        await self._transport.close()

    def identity(self, handle: str) -> AsyncIdentity:
        """Returns the client of one Identity."""
        return AsyncIdentity(self._transport, handle)

    async def create_identity(
        self, handle: str, *, timeout_seconds: float = 120, request_options: RequestOptions | None = None
    ) -> AsyncIdentity:
        """Creates an Identity and returns when it is ready."""
        ends = time.monotonic() + timeout_seconds
        await self.identities.create(handle=handle, request_options=request_options)
        while True:
            status = (await self.identities.read(handle))["status"]
            if status == "ready":
                return self.identity(handle)
            if status == "failed":
                raise AgentIdentityError(f"The Identity {handle} could not be provisioned")
            if time.monotonic() > ends:
                raise TimeoutError(f"The Identity {handle} was not ready within {timeout_seconds:g} s")
            await anyio.sleep(_POLL_SECONDS)

    def stream(self, *, after: str | None = None) -> AsyncGenerator[t.Event, None]:
        """Yields the account's Events as they happen, beginning after the Event with the id `after`, or with the next one."""
        return self._transport.events("/api/events/stream", after)


async def async_login(
    name: str,
    on_code: Callable[[str, str], None],
    *,
    scopes: Sequence[str] | NotGiven = NOT_GIVEN,
    expires_in_days: int | NotGiven = NOT_GIVEN,
    base_url: str | None = None,
    http_client: httpx.AsyncClient | None = None,
) -> t.MintedKey:
    """Signs in a program: the account holder approves a code in the browser, and the program receives an Admin Key.

    Raises an `ApiError` if the account holder denies it or the code expires. A failed connection and a busy service are no
    denial, so polling continues more slowly until the code expires (RFC 8628 section 3.5).

    Args:
        name: The name of the new key.
        on_code: Shows the account holder the address, and the code to approve there.
        scopes: The scopes of the key; by default all that the account holder has.
        expires_in_days: The days after which the key expires.
        base_url: The address of the service. Defaults to `SVC_API_URL`, then `http://localhost:8080`.
        http_client: The `httpx.AsyncClient` to use.
    """
    settings = Settings(None, Settings.of(None, base_url, 3, 30).base_url, 3, 30)
    transport = AsyncTransport(settings, http_client)
    try:
        begin = {"name": name, "scopes": scopes, "expires_in_days": expires_in_days}
        started = await transport.call(_calls.DEVICE_LOGIN_START, begin, None)
        on_code(started["verification_uri_complete"], started["user_code"])
        interval = started["interval_seconds"]
        end = datetime.fromisoformat(started["expires_at"].replace("Z", "+00:00")).timestamp()
        while True:
            await anyio.sleep(interval)
            try:
                return await transport.call(_calls.DEVICE_LOGIN_POLL, {"device_code": started["device_code"]}, None)
            except (ApiError, ApiConnectionError) as error:
                code = error.code if isinstance(error, ApiError) else None
                if code == "slow_down":
                    interval += 5
                elif code != "authorization_pending":
                    if (isinstance(error, ApiError) and error.agent_hint != "wait") or time.time() > end:
                        raise
                    interval = min(interval * 2, _SLOWEST_POLL)
    finally:
        await transport.close()
