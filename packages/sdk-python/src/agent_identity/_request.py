"""A call of the API as an HTTP request, and the settings that a caller can give."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from dataclasses import dataclass, field
from typing import Callable, Dict, Generic, Mapping, Tuple, TypedDict, TypeVar
from urllib.parse import quote, urlencode

import httpx

from ._version import API_VERSION, __version__

T = TypeVar("T")


class NotGiven:
    """The type of an argument that was not given. `None` is a value: it clears a member."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "NOT_GIVEN"


NOT_GIVEN = NotGiven()


@dataclass(frozen=True)
class Attempt:
    """An attempt of a call."""

    method: str
    path: str
    """The path with its query."""
    number: int
    """1 for the first attempt, more for its retries."""
    seconds: float
    response: httpx.Response | None
    """The response with its status and headers; None if none arrived."""
    request_id: str | None
    """The id of the request, for questions to the operator of the service."""
    error: httpx.TransportError | None
    """Why no response arrived."""


class RequestOptions(TypedDict, total=False):
    """Settings of one call."""

    timeout: float
    """Seconds after which an attempt without a response fails."""
    retries: int
    """How often the call is repeated if it fails temporarily."""
    idempotency_key: str
    """Identifies the action. By default each call gets a new key, and its retries share that key."""
    if_match: str
    """The `ETag` that the resource must still have, so that no other change is lost."""
    headers: Mapping[str, str]
    key: str
    """A key for this call in place of that of the client."""
    on_attempt: Callable[[Attempt], None]
    """Is called after each attempt, with the status and the headers of its response."""


@dataclass(frozen=True)
class Settings:
    """Settings of a client."""

    key: str | None = field(repr=False)
    base_url: str
    retries: int
    timeout: float
    api_version: str = API_VERSION
    app_info: str | None = None
    on_attempt: Callable[[Attempt], None] | None = None

    @staticmethod
    def of(key: str | None, base_url: str | None, retries: int, timeout: float) -> Settings:
        url = base_url or os.environ.get("SVC_API_URL") or "http://localhost:8080"
        return Settings(key or os.environ.get("SVC_KEY"), url.rstrip("/"), retries, timeout)


@dataclass(frozen=True)
class Spec(Generic[T]):
    """What the client needs of a call that returns `T`."""

    method: str
    path: str
    entries: str = ""
    """The member of a page with the entries."""
    cursor: str = ""
    """The member of a page with the cursor of the next page."""
    query: Tuple[str, ...] = ()
    """Members that are in the query although the call has a body."""
    takes_key: bool = False
    """The call takes an `Idempotency-Key`."""
    raw: bool = False
    """The response is not JSON."""


@dataclass(frozen=True)
class Request:
    """A request before authentication and retries."""

    method: str
    path: str
    """The path with its query."""
    body: Mapping[str, object] = field(default_factory=dict)
    takes_key: bool = False
    wait_seconds: float = 0
    """Seconds that the service may take on purpose, in addition to the timeout."""

    @property
    def content(self) -> bytes | None:
        return json.dumps(self.body, ensure_ascii=False).encode() if self.body else None

    def headers(self, settings: Settings) -> Dict[str, str]:
        headers = {
            "accept": "application/json",
            "svc-version": settings.api_version,
            "user-agent": " ".join(filter(None, [f"agent-identity-python/{__version__}", settings.app_info])),
        }
        if settings.key is not None:
            headers["authorization"] = f"Bearer {settings.key}"
        if self.body:
            headers["content-type"] = "application/json"
        return headers


def content_digest(body: bytes) -> str:
    """Returns the digest of a body as `Content-Digest` (RFC 9530)."""
    return f"sha-256=:{base64.b64encode(hashlib.sha256(body).digest()).decode()}:"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def request_of(spec: Spec[T], values: Mapping[str, object]) -> Request:
    """Returns the request of a call: members of the path, of the query, and of the body."""
    rest = {name: value for name, value in values.items() if not isinstance(value, NotGiven)}
    seconds = rest.get("seconds", rest.get("wait", 0))
    path = re.sub(r"\{(\w+)\}", lambda match: quote(_text(rest.pop(match[1])), safe=""), spec.path)
    has_body = spec.method not in ("GET", "DELETE")
    in_query = [name for name in rest if not has_body or name in spec.query]
    query = urlencode([(name, _text(rest.pop(name))) for name in in_query])
    return Request(
        spec.method,
        f"{path}?{query}" if query else path,
        rest,
        spec.takes_key,
        seconds if isinstance(seconds, (int, float)) else 0,
    )
