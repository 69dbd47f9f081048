"""The API: one function from a request to a response, below Lambda and below uvicorn alike."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from mango.api.auth import authenticate_headers, authorize
from mango.api.errors import EXPECTED, envelope, new_request_id
from mango.api.messages import Request, Response, from_event, json_response, to_event
from mango.api.router import Route, Router, check_ids
from mango.api.routes import agents, environments, events, files, health, sessions, work
from mango.services.context import Context

log = logging.getLogger("mango.api")

ROUTES: tuple[Route, ...] = (
    *health.ROUTES,
    *agents.ROUTES,
    *environments.ROUTES,
    *work.ROUTES,
    *sessions.ROUTES,
    *events.ROUTES,
    *files.ROUTES,
)


class Api:
    """Answers requests. Safe to call from many threads at once."""

    def __init__(self, context: Context) -> None:
        self._ctx = context
        self._router = Router(ROUTES)

    def __call__(self, event: Mapping[str, Any], lambda_context: object = None) -> dict[str, Any]:
        """Answers an API Gateway REST proxy event."""
        return to_event(self._guarded(lambda: from_event(event)))

    def handle(self, request: Request) -> Response:
        """Answers a request; never raises."""
        return self._guarded(lambda: request)

    def _guarded(self, read: Callable[[], Request]) -> Response:
        request_id = new_request_id()
        try:
            response = self._answer(read())
        except EXPECTED as error:
            response = error_response(error, request_id)
        except Exception as error:  # one of the two outermost loops: no request ends the server
            log.exception("request %s failed", request_id)
            response = error_response(error, request_id)
        return replace(response, headers={**response.headers, "request-id": request_id})

    def _answer(self, request: Request) -> Response:
        route, parameters = self._router.match(request.method, request.path)
        if not route.allowed:
            return route.handler(self._ctx, request)
        principal = authenticate_headers(self._ctx, request.headers)
        check_ids(parameters)
        authorize(principal, route.allowed, parameters)
        return route.handler(self._ctx, replace(request, parameters=parameters, principal=principal))


def error_response(error: BaseException, request_id: str) -> Response:
    """The envelope as a response."""
    status, headers, body = envelope(error, request_id)
    return json_response(body, status, headers)


def create_api(context: Context) -> Api:
    """The API of a process, on the ports and limits of its context."""
    return Api(context)
