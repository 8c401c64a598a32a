"""The exceptions of the client."""

from __future__ import annotations

from typing import Any, Mapping

__all__ = ["AgentIdentityError", "ApiConnectionError", "ApiError", "InvalidSignature"]


class AgentIdentityError(Exception):
    """The base class of every exception of this package."""


class ApiError(AgentIdentityError):
    """The service refused the call. Branch on `code`; `agent_hint` says what to do."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        # The arguments are those of the constructor, so that the exception can be pickled.
        super().__init__(status, problem)
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


class ApiConnectionError(AgentIdentityError):
    """No response arrived: the service is unreachable, or an attempt took longer than `timeout`."""


class InvalidSignature(AgentIdentityError):
    """A webhook delivery is not authentic, or too old."""
