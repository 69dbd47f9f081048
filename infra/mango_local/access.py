"""The operator's key, and which ones can work."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from mango.domain.errors import Unauthenticated
from mango.domain.principal import Credential
from mango.services.context import Context
from mango.services.keys import MAX_TOKEN, WORK_PREFIX, authenticate

DEVELOPMENT_KEY = "sk-mango-local-development"
MIN_TOKEN = 16
"""Fewer characters could be guessed."""


class KeyRefused(Exception):
    """`MANGO_API_KEY` cannot be the key of this server. Never says what it is."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"MANGO_API_KEY {reason}. Set it to a secret of your own, as `openssl rand -hex 24` makes one."
        )


@dataclass(frozen=True, slots=True)
class Key:
    """The key that the processes make sure of at start."""

    token: str = field(repr=False)

    @property
    def development(self) -> bool:
        """Whether it is the one that everybody knows."""
        return self.token == DEVELOPMENT_KEY


def bootstrap_key(environ: Mapping[str, str] | None = None) -> Key:
    """The operator's own key from `MANGO_API_KEY`, or the development key. Raises `KeyRefused`."""
    token = (os.environ if environ is None else environ).get("MANGO_API_KEY", "").strip()
    if not token:
        return Key(DEVELOPMENT_KEY)
    if (wrong := _wrong(token)) is not None:
        raise KeyRefused(wrong)
    return Key(token)


def check_opens(ctx: Context, key: Key) -> None:
    """Raises `KeyRefused` if the store knows the key as one that does not open everything."""
    try:
        principal = authenticate(ctx, key.token)
    except Unauthenticated:
        raise KeyRefused("is a key that was revoked") from None
    if principal.kind is not Credential.WORKSPACE:
        raise KeyRefused("is the key of an environment, which may not administer") from None


def _wrong(token: str) -> str | None:
    """Why no request could ever be authenticated by it, or everybody's could."""
    if not token.isascii():
        return "has characters other than ASCII, which no header carries"
    if not all(character.isprintable() and character != " " for character in token):
        return "has a space or a control character inside"
    if len(token) < MIN_TOKEN:
        return f"is shorter than {MIN_TOKEN} characters"
    if len(token) > MAX_TOKEN:
        return f"is longer than {MAX_TOKEN} characters"
    if DEVELOPMENT_KEY in token and token != DEVELOPMENT_KEY:
        return "has the development key in it, which everybody knows"
    if token.startswith(WORK_PREFIX):
        return f"begins with {WORK_PREFIX}, as only tokens of work do"
    return None
