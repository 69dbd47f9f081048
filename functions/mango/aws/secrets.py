"""A credential in Secrets Manager, read again from time to time so that a rotated one comes into use."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from mango.domain.errors import Unavailable

_log = logging.getLogger(__name__)

FRESH_SECONDS = 300.0
"""How long a value is used before it is read again."""
FIELD = "api_key"


class SecretUnusable(Exception):
    """The secret holds no credential; the message says what it should hold, and nothing of what it holds."""


class Secret:
    """One secret: a plain string, or a JSON object with the field `api_key`. Safe to use from many threads.

    Args:
        client: of Secrets Manager.
        arn: of the secret.
        monotonic: seconds of a clock that never goes back; for tests.
    """

    def __init__(self, client: Any, arn: str, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._arn = arn
        self._monotonic = monotonic
        self._value = ""
        self._read_at = 0.0
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Secret({self._arn!r})"

    def value(self) -> str:
        """The credential, read at most `FRESH_SECONDS` ago, or longer while Secrets Manager does not answer.

        Raises:
            Unavailable: it was never read, and cannot be read now.
            SecretUnusable: what the secret holds is no credential.
        """
        with self._lock:
            if not self._value or self._monotonic() - self._read_at >= FRESH_SECONDS:
                self._read()
            return self._value

    def forget(self) -> None:
        """Makes the next `value` read it again: the credential was refused."""
        with self._lock:
            self._read_at = self._monotonic() - FRESH_SECONDS

    def _read(self) -> None:
        try:
            answer = self._client.get_secret_value(SecretId=self._arn)
        except (ClientError, BotoCoreError) as error:
            if not self._value:
                raise Unavailable(f"the model credential cannot be read: {error}") from error
            _log.warning("the model credential cannot be read again, so the known one stays: %s", error)
        else:
            self._value = _credential(answer.get("SecretString") or "")
        self._read_at = self._monotonic()


def _credential(text: str) -> str:
    """The credential in a secret's text. Errors are raised without their cause, which would quote the text."""
    value: Any = text.strip()
    if value.startswith("{"):
        try:
            value = json.loads(value).get(FIELD)
        except ValueError:
            value = None
    if not isinstance(value, str) or not value.strip():
        raise SecretUnusable(f"the model secret must hold the key as a string, or as JSON with the field {FIELD!r}")
    return value.strip()
