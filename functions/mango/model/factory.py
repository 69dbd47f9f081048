"""Chooses the model client from the environment. Only composition roots call this."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args
from urllib.parse import urlsplit

from mango.model.bedrock import BedrockModel
from mango.model.messages import Auth, MessagesModel
from mango.model.offline import THINK_SECONDS, OfflineModel
from mango.model.scripted import ScriptedModel, ScriptNotFound, find_script
from mango.model.streaming import MAX_TOKENS, TIME_LIMIT
from mango.ports import ModelClient

Kind = Literal["offline", "scripted", "messages", "bedrock"]

ANTHROPIC_URL = "https://api.anthropic.com"


class ModelSettingsError(ValueError):
    """The environment does not describe a model; the message names the variable and the remedy."""


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Which model client to use, and how."""

    kind: Kind = "offline"
    script: str = ""
    base_url: str = ANTHROPIC_URL
    api_key: str = field(default="", repr=False)
    auth: Auth = "x-api-key"
    region: str | None = None
    model_id: str | None = None
    """For tests and examples, which put it into the agents they create; requests carry the agent's own model id."""
    think_seconds: float = THINK_SECONDS
    time_limit: float = TIME_LIMIT
    max_tokens: int = MAX_TOKENS

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> ModelSettings:
        """Reads `MANGO_MODEL`, `MANGO_MODEL_*`, `MANGO_OFFLINE_THINK_SECONDS` and the AWS region.

        Raises:
            ModelSettingsError: a variable's value is unusable.
        """
        base_url = environ.get("MANGO_MODEL_BASE_URL", "").strip()
        api_key = environ.get("MANGO_MODEL_API_KEY", "").strip()
        kind, script = _kind(environ.get("MANGO_MODEL", "").strip(), bool(base_url or api_key))
        if kind == "messages" and not (base_url or api_key):
            raise ModelSettingsError(
                "MANGO_MODEL=messages needs MANGO_MODEL_API_KEY, or MANGO_MODEL_BASE_URL of an endpoint without keys"
            )
        return cls(
            kind=kind,
            script=script,
            base_url=_url(base_url) if base_url else ANTHROPIC_URL,
            api_key=_key(api_key),
            auth=_auth(environ.get("MANGO_MODEL_AUTH", "").strip()),
            region=environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or None,
            model_id=environ.get("MANGO_MODEL_ID", "").strip() or None,
            think_seconds=_seconds(environ.get("MANGO_OFFLINE_THINK_SECONDS", "").strip()),
            max_tokens=_tokens(environ.get("MANGO_MODEL_MAX_TOKENS", "").strip()),
        )


def model_client(settings: ModelSettings) -> ModelClient:
    """The client these settings describe. Nothing is connected, and `anthropic` not imported, before a request.

    Raises:
        ModelSettingsError: the script or the AWS region is missing.
    """
    if settings.kind == "offline":
        return OfflineModel(settings.think_seconds)
    if settings.kind == "scripted":
        try:
            script = find_script(settings.script)
        except ScriptNotFound as missing:
            raise ModelSettingsError(f"MANGO_MODEL=scripted:{settings.script}: {missing}") from missing
        return ScriptedModel(settings.script, script, settings.think_seconds)
    if settings.kind == "bedrock":
        if not settings.region:
            raise ModelSettingsError("MANGO_MODEL=bedrock needs the region: set AWS_REGION")
        return BedrockModel(settings.region, time_limit=settings.time_limit, max_tokens=settings.max_tokens)
    return MessagesModel(
        settings.base_url,
        settings.api_key,
        settings.auth,
        time_limit=settings.time_limit,
        max_tokens=settings.max_tokens,
    )


def _kind(value: str, configured: bool) -> tuple[Kind, str]:
    if not value:
        return ("messages" if configured else "offline"), ""
    name, _, script = value.partition(":")
    if name == "scripted":
        if not script:
            raise ModelSettingsError("MANGO_MODEL=scripted needs a script: scripted:coding-agent, or scripted:my.py")
        return "scripted", script
    for kind in get_args(Kind):
        if value == kind:
            return kind, ""
    raise ModelSettingsError(
        f"MANGO_MODEL is {value[:80]!r}; use offline, messages, bedrock or scripted:<name or file>, or leave it unset"
    )


def _url(value: str) -> str:
    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable:
        # The value is not repeated: it may hold a password.
        raise ModelSettingsError("MANGO_MODEL_BASE_URL is no http or https URL; write https://host[:port][/path]")
    if parts.path.rstrip("/").endswith("/v1/messages"):
        raise ModelSettingsError("MANGO_MODEL_BASE_URL must not end in /v1/messages; that part is added to it")
    return value.rstrip("/")


def _key(value: str) -> str:
    if not all("!" <= character <= "~" for character in value):
        raise ModelSettingsError("MANGO_MODEL_API_KEY holds characters that a header cannot carry; paste it again")
    return value


def _auth(value: str) -> Auth:
    if not value:
        return "x-api-key"
    for auth in get_args(Auth):
        if value == auth:
            return auth  # type: ignore[no-any-return]
    raise ModelSettingsError(f"MANGO_MODEL_AUTH is {value[:80]!r}; use x-api-key or authorization-bearer")


def _seconds(value: str) -> float:
    try:
        seconds = float(value) if value else THINK_SECONDS
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= 600:
        raise ModelSettingsError(
            f"MANGO_OFFLINE_THINK_SECONDS is {value[:80]!r}; use a number of seconds from 0 to 600, such as 0.5"
        )
    return seconds


def _tokens(value: str) -> int:
    if not value:
        return MAX_TOKENS
    if not (value.isascii() and value.isdecimal() and 1 <= int(value[:9]) <= 1_000_000 and len(value) < 8):
        raise ModelSettingsError(f"MANGO_MODEL_MAX_TOKENS is {value[:80]!r}; use a whole number such as {MAX_TOKENS}")
    return int(value)
