"""Who asks, and whether this credential reaches that far."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mango.domain.errors import Forbidden, Unauthenticated
from mango.domain.principal import Credential, Principal
from mango.domain.transaction import Item
from mango.services import keys
from mango.services.context import Context
from mango.services.session_access import meta_key, owned

_BEARER = re.compile(r"bearer +([^\s]+) *", re.IGNORECASE)


def authenticate_headers(ctx: Context, headers: Mapping[str, str]) -> Principal:
    """Verifies `Authorization: Bearer` or `x-api-key`; either carries any kind of credential (decision 2).

    Raises:
        Unauthenticated: there is none, it is malformed, unknown or revoked.
    """
    lower = {name.lower(): value for name, value in headers.items()}
    given = lower.get("authorization")
    if given is None:
        key = lower.get("x-api-key")
        if key is None:
            raise Unauthenticated("missing authorization header")
        return keys.authenticate(ctx, key.strip())
    match = _BEARER.fullmatch(given.strip())
    if match is None:
        raise Unauthenticated("invalid authorization header")
    return keys.authenticate(ctx, match[1])


def require_session_access(ctx: Context, principal: Principal, session_id: str) -> Item:
    """The META item of a session that the principal may see.

    Raises:
        NotFound: there is none for this principal.
        Forbidden: a work token names a session other than its own.
    """
    return owned(ctx.store.get(meta_key(session_id)), principal, session_id)


WORKSPACE = frozenset({Credential.WORKSPACE})
WITH_ENVIRONMENT = frozenset({Credential.WORKSPACE, Credential.ENVIRONMENT})
EVERYBODY = frozenset(Credential)


def authorize(principal: Principal, allowed: frozenset[Credential], parameters: Mapping[str, str]) -> None:
    """Checks a credential against its route, and a scoped one against the ids in the path.

    Raises:
        Forbidden: the credential is out of its scope.
    """
    if principal.kind not in allowed:
        raise Forbidden(f"a credential of kind '{principal.kind}' may not use this route")
    if principal.kind is Credential.WORKSPACE:
        return
    _same(parameters, "environment_id", principal.environment_id)
    if principal.kind is Credential.WORK:
        _same(parameters, "session_id", principal.session_id)
        _same(parameters, "work_id", principal.work_id)


def _same(parameters: Mapping[str, str], name: str, own: str | None) -> None:
    if name in parameters and parameters[name] != own:
        raise Forbidden(f"this credential is for another {name.removesuffix('_id')}")
