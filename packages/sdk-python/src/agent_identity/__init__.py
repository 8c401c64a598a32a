"""The client of the Agent Identity Service: a name, a mailbox, a tunnel and a vault for software agents.

    from agent_identity import Client

    with Client() as client:
        ada = client.create_identity("ada")
        message = ada.wait_for_message(from_="grace@example.org")
        if message is not None:
            ada.reply(message, text="Thank you!")
"""

from . import types
from ._async_client import AsyncClient, AsyncIdentity, async_login
from ._errors import (
    AgentIdentityError,
    ApiConnectionError,
    ApiError,
    AuthenticationError,
    ConflictError,
    InvalidRequestError,
    InvalidSignature,
    NotFoundError,
    PermissionDeniedError,
    RateLimitError,
    ServiceError,
)
from ._request import NOT_GIVEN, Attempt, RequestOptions, NotGiven
from ._sync_client import Client, Identity, login
from ._tunnel import Tunnel
from ._version import API_VERSION, __version__
from ._webhooks import sign_webhook, verify_webhook

__all__ = [
    "API_VERSION",
    "NOT_GIVEN",
    "Attempt",
    "AuthenticationError",
    "ConflictError",
    "InvalidRequestError",
    "NotFoundError",
    "PermissionDeniedError",
    "RateLimitError",
    "ServiceError",
    "sign_webhook",
    "AgentIdentityError",
    "ApiConnectionError",
    "ApiError",
    "AsyncClient",
    "AsyncIdentity",
    "RequestOptions",
    "Client",
    "Identity",
    "InvalidSignature",
    "NotGiven",
    "Tunnel",
    "__version__",
    "async_login",
    "login",
    "types",
    "verify_webhook",
]
