"""From a path to its route: the resolver of Powertools, one for each thread.

A resolver keeps the request it works on, and Powertools (3.37) keeps it on a class that all resolvers share; so each
thread has a resolver of its own whose current event is its own too. Requests and responses are ours, since contents
of files pass through the embedded profile in pieces, which a proxy event cannot carry.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

from aws_lambda_powertools.event_handler import APIGatewayRestResolver
from aws_lambda_powertools.event_handler import Response as Acknowledged
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEvent

from mango.api.auth import WORKSPACE
from mango.api.messages import Request, Response
from mango.domain.errors import NotFound
from mango.domain.principal import Credential
from mango.services.context import Context

Handler = Callable[[Context, Request], Response]
Answering = Callable[["Route", Request, Mapping[str, str]], Response]
Failing = Callable[[Exception], Response]

_ID = re.compile(r"[A-Za-z0-9_-]{1,128}", re.ASCII)


class Route(NamedTuple):
    """`allowed` names the kinds of credential that may use it; empty makes it public."""

    method: str
    path: str
    handler: Handler
    allowed: frozenset[Credential] = WORKSPACE


class Resolver(APIGatewayRestResolver):
    """The routes, for one thread."""

    def __init__(self, routes: Sequence[Route], answer: Answering, fail: Failing) -> None:
        super().__init__()
        self._answer, self._fail, self._routes_by_path = answer, fail, routes
        self._request: Request | None = None
        self._response: Response | None = None
        self._event: APIGatewayProxyEvent | None = None
        for route in routes:
            self.route(_rule(route.path), method=[route.method])(self._runner(route))
        self.not_found(self._missing)
        self.exception_handler(Exception)(self._failed)

    @property
    def current_event(self) -> Any:
        """Of this resolver, not of the class that Powertools keeps it on."""
        return self._event

    @current_event.setter
    def current_event(self, event: Any) -> None:
        self._event = event

    def respond(self, request: Request) -> Response:
        """The response of the request's route; an error becomes the response that `fail` gives it."""
        self._request, self._response = request, None
        event = {"httpMethod": request.method, "path": request.path or "/"}
        self._event = APIGatewayProxyEvent(event)
        self.resolve(event, None)  # type: ignore[arg-type]  # no route looks at the Lambda context
        assert self._response is not None, "every route, and every failure, gives a response"
        return self._response

    def _runner(self, route: Route) -> Callable[..., Acknowledged[str]]:
        def run(**parameters: str) -> Acknowledged[str]:
            assert self._request is not None
            decoded = {name: unquote(text) for name, text in parameters.items()}
            return self._keep(self._answer(route, self._request, decoded))

        return run

    def _missing(self, error: Exception) -> Acknowledged[str]:
        assert self._request is not None
        method, path = self._request.method, self._request.path
        others = [route.method for route in self._routes_by_path if _fits(route.path, path)]
        hint = f"; it takes {', '.join(dict.fromkeys(others))}" if others else ""
        return self._failed(NotFound(f"there is no route {method[:20]} {path[:200]}{hint}"))

    def _failed(self, error: Exception) -> Acknowledged[str]:
        return self._keep(self._fail(error))

    def _keep(self, response: Response) -> Acknowledged[str]:
        self._response = response
        return Acknowledged(response.status, body="")


class Resolvers:
    """A resolver for each thread that asks."""

    def __init__(self, routes: Sequence[Route], answer: Answering, fail: Failing) -> None:
        self._arguments = (routes, answer, fail)
        self._threads = threading.local()

    def respond(self, request: Request) -> Response:
        resolver: Resolver | None = getattr(self._threads, "resolver", None)
        if resolver is None:
            resolver = self._threads.resolver = Resolver(*self._arguments)
        return resolver.respond(request)


def check_ids(parameters: Mapping[str, str]) -> None:
    """What cannot be an id is the id of nothing.

    Raises:
        NotFound: an id holds other characters than ids do, or too many.
    """
    for name, text in parameters.items():
        if not _ID.fullmatch(text):
            raise NotFound(f"{name.removesuffix('_id').replace('_', ' ')} {text[:80]!r} was not found")


def _rule(path: str) -> str:
    """The path as Powertools spells it."""
    return path.replace("{", "<").replace("}", ">")


def _fits(path: str, requested: str) -> bool:
    return re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), requested.rstrip("/")) is not None
