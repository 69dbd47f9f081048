"""API keys: only digests are stored; the token's own value tells what kind of credential it is."""

from __future__ import annotations

import hashlib
import threading
import weakref
from collections.abc import Mapping
from typing import Any, NamedTuple

from mango.domain import keys
from mango.domain.errors import NotFound, Unauthenticated
from mango.domain.principal import Credential, Principal
from mango.domain.times import SECOND
from mango.domain.transaction import Equals, Item, Put, Refused, Transaction, Update, Value
from mango.ports import Store
from mango.services import creation
from mango.services.context import Context
from mango.services.listing import newest
from mango.services.resources import shown_time

Json = dict[str, Any]

KIND = "api_keys"
BOOTSTRAP = "bootstrap"
"""Label of keys that were given to the deployment from outside."""
DEFAULT_WORKSPACE = "wrkspc_default"
WORK_PREFIX = "sess_mango_"
"""Tokens of claimed work start like this; `mango.services.work` verifies them."""
KEY_PREFIX, ENVIRONMENT_PREFIX = "sk-mango-", "sk-mango-env-"
MAX_TOKEN = 1024
REMEMBER = 2 * SECOND
"""How long a workspace key that was found is taken as valid without looking again."""
_REMEMBERED_KEYS = 1000
_LABELLED = 90


class NewKey(NamedTuple):
    """A key as it is shown, and its text, which cannot be had again."""

    shown: Json
    token: str


def digest(token: str) -> str:
    """What is stored of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def authenticate(ctx: Context, token: str) -> Principal:
    """Whom a token stands for.

    Raises:
        Unauthenticated: it is unknown or revoked.
    """
    if not token or len(token) > MAX_TOKEN or not token.isascii():
        raise Unauthenticated("invalid API key")
    if token.startswith(WORK_PREFIX):
        # Imported here: work depends on half of the services, and those on this one.
        from mango.services.work import authenticate_token

        return authenticate_token(ctx, token)
    hashed, now = digest(token), ctx.clock.now()
    remembered = _memory.find(ctx.store, hashed, now)
    if remembered is not None:
        return remembered
    item = ctx.store.get(keys.api_key(hashed))
    if item is None or item["revoked_at"] is not None:
        raise Unauthenticated("invalid API key")
    principal = _principal(item)
    if principal.kind is Credential.WORKSPACE:
        _memory.keep(ctx.store, hashed, principal, now)
    return principal


def create_key(ctx: Context, workspace_id: str, label: str, environment_id: str | None = None) -> NewKey:
    """A new key of a workspace, or of one of its environments.

    Raises:
        NotFound: the workspace has no such environment.
    """
    if environment_id is not None:
        environment = ctx.store.get(keys.environment(environment_id))
        if environment is None or environment["workspace_id"] != workspace_id:
            raise NotFound(f"environment {environment_id!r} was not found")
    token = (KEY_PREFIX if environment_id is None else ENVIRONMENT_PREFIX) + ctx.ids.secret()
    put = key_row(ctx, token, workspace_id, label, environment_id)
    creation.commit_new(ctx, Transaction((put,)))
    return NewKey(_show(put.item), token)


def ensure_key(ctx: Context, token: str, workspace_id: str = DEFAULT_WORKSPACE, label: str = BOOTSTRAP) -> None:
    """Makes a given token a key of the workspace, once; a revoked one stays revoked."""
    key = keys.api_key(digest(token))
    if ctx.store.get(key) is not None:
        return
    try:
        creation.commit_new(ctx, Transaction((key_row(ctx, token, workspace_id, label),)))
    except Refused:
        return  # another process was faster


def list_keys(ctx: Context, workspace_id: str) -> list[Json]:
    """All keys of a workspace, newest first, without their text."""
    found = newest(ctx, keys.listing(workspace_id, KIND), _show, _REMEMBERED_KEYS)
    return [entry.shown for entry in found.entries]


def rows_labelled(ctx: Context, workspace_id: str, label: str) -> list[Item]:
    """The newest rows of a workspace's keys with a label; no more than one transaction can take."""

    def chosen(item: Item) -> Json | None:
        return dict(item) if item["label"] == label else None

    found = newest(ctx, keys.listing(workspace_id, KIND), chosen, _LABELLED)
    return [entry.shown for entry in found.entries]


def revoke(ctx: Context, workspace_id: str, key_id: str) -> Json:
    """Ends a key. Environment keys end with the next request, workspace keys within two seconds.

    Raises:
        NotFound: the workspace has no such key.
    """
    found = newest(ctx, keys.listing(workspace_id, KIND), lambda item: dict(item) if item["id"] == key_id else None, 1)
    if not found.entries:
        raise NotFound(f"key {key_id!r} was not found")
    key = keys.api_key(found.entries[0].shown["digest"])
    now = ctx.clock.now()

    def read() -> Item:
        item = ctx.store.get(key)
        if item is None:
            raise NotFound(f"key {key_id!r} was not found")
        return item

    def update(item: Item) -> Update | None:
        if item["revoked_at"] is not None:
            return None
        return Update(key, {"revoked_at": now}, conditions=(Equals("revoked_at", None),))

    return _show(creation.change(ctx, key, read, update))


def key_row(ctx: Context, token: str, workspace_id: str, label: str, environment_id: str | None = None) -> Put:
    """The row that makes a token a key."""
    key_id, now = ctx.ids.new("apikey"), ctx.clock.now()
    hashed = digest(token)
    item: Item = {
        "id": key_id,
        "digest": hashed,
        "workspace_id": workspace_id,
        "environment_id": environment_id,
        "label": label,
        "created_at": now,
        "revoked_at": None,
        **keys.listed(workspace_id, KIND, now, key_id),
    }
    return Put(keys.api_key(hashed), item)


def _show(item: Mapping[str, Value]) -> Json:
    return {
        "id": item["id"],
        "type": "api_key",
        "label": item["label"],
        "environment_id": item["environment_id"],
        "created_at": shown_time(item["created_at"]),
        "revoked_at": shown_time(item["revoked_at"]),
    }


def _principal(item: Item) -> Principal:
    environment = item["environment_id"]
    return Principal(
        kind=Credential.WORKSPACE if environment is None else Credential.ENVIRONMENT,
        workspace_id=str(item["workspace_id"]),
        key_id=str(item["id"]),
        environment_id=None if environment is None else str(environment),
    )


class _Memory:
    """Workspace keys found lately, by store. Environment keys are never kept: revoking one holds at once."""

    def __init__(self) -> None:
        self._found: weakref.WeakKeyDictionary[Store, dict[str, tuple[int, Principal]]] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()

    def find(self, store: Store, hashed: str, now: int) -> Principal | None:
        with self._lock:
            at, principal = self._found.get(store, {}).get(hashed, (0, None))
        # A clock that was set back must not stretch what is remembered.
        return principal if 0 <= now - at < REMEMBER else None

    def keep(self, store: Store, hashed: str, principal: Principal, now: int) -> None:
        with self._lock:
            known = self._found.setdefault(store, {})
            if len(known) >= _REMEMBERED_KEYS:
                known.clear()
            known[hashed] = (now, principal)


_memory = _Memory()
