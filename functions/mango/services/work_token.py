"""Per-work tokens: what a container holds. They name their claim, and are worth nothing after it."""

from __future__ import annotations

import base64
import binascii
import hmac
import json

from mango.domain import keys
from mango.domain.errors import Unauthenticated
from mango.domain.principal import Credential, Principal
from mango.domain.work import Work, WorkState, read_work
from mango.services.context import Context
from mango.services.work_store import digest

PREFIX = "sess_mango_"


def issue(work: Work, secret: str) -> str:
    """The token of a claim: environment, work and generation in the clear, then 256 random bits."""
    text = f"{work.environment_id}.{work.work_id}.{work.gen}.{secret}"
    return PREFIX + base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def wrap(token: str) -> str:
    """The `secret` of a polled work item (wire contract, section 4.1)."""
    return base64.urlsafe_b64encode(json.dumps({"sessions_token": token}).encode()).decode()


def authenticate_token(ctx: Context, token: str) -> Principal:
    """Who holds this token, if its claim still stands.

    Raises:
        Unauthenticated: it is no token, or its claim was stopped, expired or handed to somebody else.
    """
    environment_id, work_id, generation = _claim(token)
    item = ctx.store.get(keys.work(environment_id, work_id))
    work = read_work(item) if item else None
    if work is None or not _holds(work, generation, token, ctx.clock.now()):
        raise Unauthenticated("the work token is not valid, or its lease has ended")
    return Principal(
        kind=Credential.WORK,
        workspace_id=work.workspace_id,
        key_id=work.work_id,
        environment_id=environment_id,
        session_id=work.session_id,
        work_id=work_id,
        generation=generation,
        token_digest=work.digest,
    )


def _holds(work: Work, generation: int, token: str, now: int) -> bool:
    known = hmac.compare_digest(work.digest, digest(token))
    held = work.state in (WorkState.STARTING, WorkState.ACTIVE, WorkState.STOPPING) and work.live(now)
    return known and work.usable and work.gen == generation and held


def _claim(token: str) -> tuple[str, str, int]:
    text = token.removeprefix(PREFIX)
    try:
        parts = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode().split(".")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        raise Unauthenticated("invalid credential") from None
    if len(parts) != 4 or not parts[2].isdecimal():
        raise Unauthenticated("invalid credential")
    return parts[0], parts[1], int(parts[2])
