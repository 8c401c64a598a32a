"""Verification of webhook deliveries (https://www.standardwebhooks.com)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
import uuid
from typing import Dict, Mapping, Sequence, cast

from . import types as t
from ._errors import InvalidSignature


def verify_webhook(
    headers: Mapping[str, str], body: bytes | str, secret: str | Sequence[str], *, tolerance_seconds: float = 300
) -> t.Event:
    """Returns the Event of a delivery, or raises `InvalidSignature`.

    A delivery is valid if one of its signatures was made with one of the secrets (`whsec_…`; several during a rotation)
    in the last `tolerance_seconds` (five minutes). `webhook-id` is the id of the Event, and a delivery may arrive twice: store the id and
    ignore repeats.

    Args:
        headers: The headers of the request; the case of their names does not matter.
        body: The body exactly as it arrived, before it was parsed.
        secret: The signing secret, or several.
        tolerance_seconds: Seconds that the clocks of the service and the receiver may differ.
    """
    given = {name.lower(): value for name, value in headers.items()}
    for name in ("webhook-id", "webhook-timestamp", "webhook-signature"):
        if name not in given:
            raise InvalidSignature(f"The request has no header {name}")
    at = given["webhook-timestamp"]
    if not at.isascii() or not at.isdigit() or abs(time.time() - int(at)) > tolerance_seconds:
        raise InvalidSignature(f"The delivery is older than {tolerance_seconds:g} seconds, or the clock of this machine is wrong")
    content = body.encode() if isinstance(body, str) else body
    signed = f"{given['webhook-id']}.{at}.".encode() + content
    signatures = [one[3:].encode() for one in given["webhook-signature"].split(" ") if one.startswith("v1,")]
    for one in [secret] if isinstance(secret, str) else secret:
        expected = base64.b64encode(hmac.new(_key(one), signed, hashlib.sha256).digest())
        if any(hmac.compare_digest(expected, signature) for signature in signatures):
            return cast(t.Event, json.loads(content))
    raise InvalidSignature("No signature matches: the secret is wrong, or the body was changed or parsed before")


def sign_webhook(
    body: bytes | str, secret: str, *, id: str | None = None, timestamp: int | None = None
) -> Dict[str, str]:
    """Returns the headers of a delivery, for tests of your receiver."""
    event = id or f"evt_{uuid.uuid4().hex}"
    at = str(int(time.time()) if timestamp is None else timestamp)
    signed = f"{event}.{at}.".encode() + (body.encode() if isinstance(body, str) else body)
    signature = base64.b64encode(hmac.new(_key(secret), signed, hashlib.sha256).digest()).decode()
    return {"webhook-id": event, "webhook-timestamp": at, "webhook-signature": f"v1,{signature}"}


def _key(secret: str) -> bytes:
    try:
        return base64.b64decode(secret.removeprefix("whsec_"))
    except binascii.Error as cause:
        raise ValueError("A signing secret is `whsec_` followed by base64") from cause
