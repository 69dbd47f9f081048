"""The API: one function from a request to a response, below Lambda and below uvicorn alike."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mango.api.auth import authenticate_headers, authorize
from mango.api.errors import EXPECTED, envelope, new_request_id
from mango.api.messages import Request, Response, from_event, json_response, to_event
from mango.api.router import Resolvers, Route, check_ids
from mango.api.routes import agents, environments, events, files, files_uploads, health, sessions, work
from mango.domain.errors import InvalidRequest, Unsupported
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
    *files_uploads.ROUTES,
)


_ADMITTED = Response(204)


class Api:
    """Answers requests. Safe to call from many threads at once."""

    def __init__(self, context: Context) -> None:
        self._ctx = context
        self._resolvers = Resolvers(ROUTES, self._answer, self._fail)
        self._entrances = Resolvers(ROUTES, self._admit, self._fail)

    def __call__(self, event: Mapping[str, Any], lambda_context: object = None) -> dict[str, Any]:
        """Answers an API Gateway REST proxy event."""
        try:
            request = from_event(event)
        except InvalidRequest as error:
            return to_event(self._fail(error))
        return to_event(self.handle(request))

    def handle(self, request: Request) -> Response:
        """Answers a request; never raises."""
        response = self._resolvers.respond(request)
        if "request-id" in response.headers:
            return response
        return replace(response, headers={**response.headers, "request-id": new_request_id()})

    def refusal(self, request: Request) -> Response | None:
        """What a request is answered for its route and headers alone, whatever its body holds; None to read that too.

        For carriers that would have to keep the body meanwhile. `handle` makes the same checks again.
        """
        response = self._entrances.respond(request)
        return None if response is _ADMITTED else response

    def _answer(self, route: Route, request: Request, parameters: Mapping[str, str]) -> Response:
        return route.handler(self._ctx, self._admitted(route, request, parameters))

    def _admit(self, route: Route, request: Request, parameters: Mapping[str, str]) -> Response:
        self._admitted(route, request, parameters)
        return _ADMITTED

    def _admitted(self, route: Route, request: Request, parameters: Mapping[str, str]) -> Request:
        """The request with who asks and for what."""
        if not route.allowed:
            return request
        principal = authenticate_headers(self._ctx, request.headers)
        check_ids(parameters)
        authorize(principal, route.allowed, parameters)
        _refuse_idempotency_key(request)
        return replace(request, parameters=parameters, principal=principal)

    def _fail(self, error: Exception) -> Response:
        """The envelope; what nobody foresaw is logged with the request's id."""
        request_id = new_request_id()
        if not isinstance(error, EXPECTED):
            log.error("request %s failed", request_id, exc_info=error)
        return error_response(error, request_id)


def _refuse_idempotency_key(request: Request) -> None:
    """A client that sends one relies on it, and would post twice."""
    if request.method == "POST" and "idempotency-key" in request.headers:
        raise Unsupported("is not supported yet; leave it out", path="Idempotency-Key")


def error_response(error: BaseException, request_id: str) -> Response:
    """The envelope as a response."""
    status, headers, body = envelope(error, request_id)
    return json_response(body, status, headers)


def create_api(context: Context) -> Api:
    """The API of a process, on the ports and limits of its context."""
    return Api(context)
