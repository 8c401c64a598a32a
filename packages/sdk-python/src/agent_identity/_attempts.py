"""The attempts of one call: which failure may be repeated, after which time, and with the same `Idempotency-Key`."""

from __future__ import annotations

import json
import logging
import random
import time
import uuid
from typing import Any, Dict

import httpx

from ._errors import ApiConnectionError, api_error
from ._request import Attempt, RequestOptions, Request, Settings

_log = logging.getLogger("agent_identity")

_LONGEST_WAIT = 60.0
"""The longest wait in seconds before a retry. If the service asks for a longer one, the call fails instead."""


def _is_temporary(status: int) -> bool:
    """Returns whether a repeat may change the response: the service or a proxy in front of it is busy or restarting."""
    return status in (429, 502, 503, 504)


def problem_of(response: httpx.Response) -> Dict[str, Any]:
    """Returns the problem body of a refusal, or a substitute if a proxy responded instead of the service."""
    try:
        body = json.loads(response.content)
        if isinstance(body, dict) and isinstance(body.get("code"), str):
            return body
    except ValueError:
        pass
    return {
        "code": "unexpected_response",
        "title": "Unexpected response",
        "detail": f"{response.status_code} {response.text[:200]}".strip(),
        "agent_hint": "wait" if _is_temporary(response.status_code) else "stop",
    }


class Attempts:
    def __init__(self, settings: Settings, request: Request, options: RequestOptions) -> None:
        self.timeout = options.get("timeout", settings.timeout) + request.wait_seconds
        self.headers = request.headers(settings)
        if "key" in options:
            self.headers["authorization"] = f"Bearer {options['key']}"
        if "if_match" in options:
            self.headers["if-match"] = options["if_match"]
        if request.takes_key:
            self.headers["idempotency-key"] = options.get("idempotency_key") or str(uuid.uuid4())
        self.headers.update(options.get("headers", {}))
        self._request = request
        self._hooks = [one for one in (settings.on_attempt, options.get("on_attempt")) if one is not None]
        self._began = 0.0
        self._base_url = settings.base_url
        self._left = options.get("retries", settings.retries)
        self._count = 0
        # Without a key a repeat could have a second effect.
        self._is_repeatable = request.takes_key or request.method == "GET"

    def begin(self) -> None:
        self._began = time.monotonic()

    def end(self, response: httpx.Response | None, error: httpx.TransportError | None = None) -> None:
        """Logs an attempt and calls the hooks of the caller."""
        request_id = None if response is None else response.headers.get("request-id")
        seconds = time.monotonic() - self._began
        attempt = Attempt(
            self._request.method, self._request.path, self._count + 1, seconds, response, request_id, error
        )
        what = error if response is None else response.status_code
        _log.debug("%s %s: %s in %.0f ms (%s)", attempt.method, attempt.path, what, seconds * 1000, request_id)
        for hook in self._hooks:
            hook(attempt)

    def after_failure(self, cause: httpx.TransportError) -> float:
        """Returns the seconds to wait before the next attempt, or raises an `ApiConnectionError`."""
        if self._left <= 0 or not self._is_repeatable:
            is_late = isinstance(cause, httpx.TimeoutException)
            what = f"gave no response within {self.timeout:g} s" if is_late else "is unreachable"
            raise ApiConnectionError(f"{self._base_url} {what}") from cause
        return self._next("")

    def after_refusal(self, response: httpx.Response) -> float:
        """Returns the seconds to wait before the next attempt, or raises an `ApiError`."""
        status = response.status_code
        # A limit refuses before anything happens; after other failures the outcome is unknown.
        may_repeat = status == 429 or (self._is_repeatable and _is_temporary(status))
        if self._left > 0 and may_repeat:
            seconds = self._next(response.headers.get("retry-after", ""))
            if seconds <= _LONGEST_WAIT:
                return seconds
        raise api_error(status, problem_of(response), dict(response.headers))

    def _next(self, retry_after: str) -> float:
        """Counts an attempt. The wait is what the service asks, else 0.25 s doubling to 8 s, spread so that clients do not meet."""
        self._left -= 1
        self._count += 1
        try:
            return max(0.0, float(retry_after))
        except ValueError:
            return min(0.25 * 2.0 ** (self._count - 1), 8.0) * random.uniform(0.5, 1.0)
