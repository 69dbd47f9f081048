"""Whether the process lives, and whether it can serve."""

from __future__ import annotations

from mango.api.messages import Request, Response, json_response
from mango.api.router import Route
from mango.services.context import Context

_FRESH = {"cache-control": "no-store"}


def live(ctx: Context, request: Request) -> Response:
    """Touches nothing."""
    return json_response({"status": "ok"}, headers=_FRESH)


def ready(ctx: Context, request: Request) -> Response:
    """Asks the store, where it can be asked; a store that fails raises."""
    ping = getattr(ctx.store, "ping", None)
    if ping is not None:
        ping()
    return json_response({"status": "ok"}, headers=_FRESH)


ROUTES = (
    Route("GET", "/healthz", live, frozenset()),
    Route("GET", "/readyz", ready, frozenset()),
)
