"""Verification of webhook deliveries (https://www.standardwebhooks.com)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from typing import Mapping, Sequence, cast

from . import types as t
from ._errors import InvalidSignature

_TOLERANCE = 300
"""Seconds that the clocks of the service and the receiver may differ."""


def verify_webhook(headers: Mapping[str, str], body: bytes | str, secret: str | Sequence[str]) -> t.Event:
    """Returns the Event of a delivery, or raises `InvalidSignature`.

    A delivery is valid if one of its signatures was made with one of the secrets (`whsec_…`; several during a rotation)
    in the last five minutes. `webhook-id` is the id of the Event, and a delivery may arrive twice: store the id and
    ignore repeats.

    Args:
        headers: The headers of the request; the case of their names does not matter.
        body: The body exactly as it arrived, before it was parsed.
        secret: The signing secret, or several.
    """
    given = {name.lower(): value for name, value in headers.items()}
    for name in ("webhook-id", "webhook-timestamp", "webhook-signature"):
        if name not in given:
            raise InvalidSignature(f"The request has no header {name}")
    at = given["webhook-timestamp"]
    if not at.isascii() or not at.isdigit() or abs(time.time() - int(at)) > _TOLERANCE:
        raise InvalidSignature("The delivery is older than five minutes, or the clock of this machine is wrong")
    content = body.encode() if isinstance(body, str) else body
    signed = f"{given['webhook-id']}.{at}.".encode() + content
    signatures = [one[3:].encode() for one in given["webhook-signature"].split(" ") if one.startswith("v1,")]
    for one in [secret] if isinstance(secret, str) else secret:
        expected = base64.b64encode(hmac.new(_key(one), signed, hashlib.sha256).digest())
        if any(hmac.compare_digest(expected, signature) for signature in signatures):
            return cast(t.Event, json.loads(content))
    raise InvalidSignature("No signature matches: the secret is wrong, or the body was changed or parsed before")


def _key(secret: str) -> bytes:
    try:
        return base64.b64decode(secret.removeprefix("whsec_"))
    except binascii.Error as cause:
        raise ValueError("A signing secret is `whsec_` followed by base64") from cause
