"""The exceptions of the client."""

from __future__ import annotations

from typing import Any, Mapping

__all__ = [
    "AgentIdentityError",
    "ApiConnectionError",
    "ApiError",
    "AuthenticationError",
    "ConflictError",
    "InvalidRequestError",
    "InvalidSignature",
    "NotFoundError",
    "PermissionDeniedError",
    "RateLimitError",
    "ServiceError",
]


class AgentIdentityError(Exception):
    """The base class of every exception of this package."""


class ApiError(AgentIdentityError):
    """The service refused the call. Branch on `code`; `agent_hint` says what to do."""

    def __init__(self, status: int, problem: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
        # The arguments are those of the constructor, so that the exception can be pickled.
        super().__init__(status, problem, headers)
        self.headers: Mapping[str, str] = headers or {}
        """The headers of the response, with names in lower case."""
        self.status = status
        self.problem = problem
        """The problem body (RFC 9457)."""
        self.code = str(problem["code"])
        """The stable code, for example `not_found`."""
        self.detail = str(problem.get("detail", ""))
        self.agent_hint = str(problem.get("agent_hint", "stop"))
        """`fix_call`: change the call. `wait`: try again later. `stop`: give up and tell a person."""
        self.retry_after_seconds: float | None = problem.get("retry_after_seconds")
        """Seconds after which the call can be repeated, if the service named them."""
        self.errors: list[dict[str, str]] = list(problem.get("errors", []))
        """The members of the input that are wrong, each with `path` and `message`."""
        self.request_id: str | None = problem.get("instance")

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}"


class InvalidRequestError(ApiError):
    """The request is wrong: status 400 and others without a class of their own."""


class AuthenticationError(ApiError):
    """The key is missing, unknown, revoked or expired (401)."""


class PermissionDeniedError(ApiError):
    """The key may not do this (403)."""


class NotFoundError(ApiError):
    """The resource does not exist (404)."""


class ConflictError(ApiError):
    """The state does not allow it, the resource has changed, or the key of the request was used for another (409, 412, 422)."""


class RateLimitError(ApiError):
    """A limit is reached (429)."""


class ServiceError(ApiError):
    """The service failed (500 and above)."""


_OF_STATUS = {
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    412: ConflictError,
    422: ConflictError,
    429: RateLimitError,
}


def api_error(status: int, problem: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> ApiError:
    """Returns the exception of a refused call, in the class of its status."""
    usual = ServiceError if status >= 500 else InvalidRequestError
    return _OF_STATUS.get(status, usual)(status, problem, headers)


class ApiConnectionError(AgentIdentityError):
    """No response arrived: the service is unreachable, or an attempt took longer than `timeout`."""


class InvalidSignature(AgentIdentityError):
    """A webhook delivery is not authentic, or too old."""
