"""Where the development key is accepted, which everybody knows."""

from __future__ import annotations

from ipaddress import ip_address

from mango.api.asgi import Application, Receive, Scope, Send, refuse
from mango.domain.errors import Forbidden
from mango_local.access import DEVELOPMENT_KEY

_CARRIERS = (b"authorization", b"x-api-key")


class KeepDevelopmentKeyHome:
    """An ASGI application around another, which refuses the development key on every address but loopback.

    Containers reach this machine by Docker's bridge, and whatever runs in them knows the key like everybody else. They
    need no more than tokens of their own work, which pass.
    """

    def __init__(self, app: Application) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not _at_home(scope) and _carries_development_key(scope):
            await refuse(_not_here(scope), receive, send)
        else:
            await self._app(scope, receive, send)


def _at_home(scope: Scope) -> bool:
    """Whether the connection came in on loopback, by which only this machine can reach us."""
    server = scope.get("server")
    try:
        return server is not None and ip_address(server[0]).is_loopback
    except ValueError:
        return False


def _carries_development_key(scope: Scope) -> bool:
    # Within, not equal: what the server forgives around a key (spaces, "Bearer") must not hide it here.
    key = DEVELOPMENT_KEY.encode()
    return any(name.lower() in _CARRIERS and key in value for name, value in scope["headers"])


def _not_here(scope: Scope) -> Forbidden:
    port = (scope.get("server") or ("", None))[1]
    return Forbidden(
        "everybody knows the development key, so it is accepted on loopback only: use "
        f"http://127.0.0.1{f':{port}' if port else ''}, or start the server with MANGO_API_KEY set to a key of your own"
    )
