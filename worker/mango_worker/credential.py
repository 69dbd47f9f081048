"""The work credential: the `secret` of a polled work item."""

import base64
import binascii
import json

from mango_worker.errors import CredentialError


def session_token(secret: str) -> str:
    """The bearer token inside a work item's `secret` (URL-safe base64 of JSON, padding optional).

    Fails closed: anything else than a usable `sessions_token` raises CredentialError.
    """
    try:
        raw = base64.urlsafe_b64decode(secret.encode("ascii") + b"=" * (-len(secret) % 4))
        content = json.loads(raw)
    except (ValueError, binascii.Error, RecursionError):
        raise CredentialError("the work credential cannot be decoded") from None
    token = content.get("sessions_token") if isinstance(content, dict) else None
    if not isinstance(token, str) or not token or not token.isascii() or not token.isprintable() or " " in token:
        raise CredentialError("the work credential holds no usable session token")
    return token
