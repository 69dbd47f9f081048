"""From a path to its route.

Not the resolver of Powertools: that keeps the current request in a class attribute, so two threads of one process
would answer each other's requests (checked in 3.37), and the embedded profile is threaded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple
from urllib.parse import unquote

from mango.api.auth import WORKSPACE
from mango.api.messages import Request, Response
from mango.domain.errors import NotFound
from mango.domain.principal import Credential
from mango.services.context import Context

Handler = Callable[[Context, Request], Response]

_ID = re.compile(r"[A-Za-z0-9_-]{1,128}", re.ASCII)


class Route(NamedTuple):
    """`allowed` names the kinds of credential that may use it; empty makes it public."""

    method: str
    path: str
    handler: Handler
    allowed: frozenset[Credential] = WORKSPACE


class Match(NamedTuple):
    """A route and the ids in its path, decoded."""

    route: Route
    parameters: dict[str, str]


class Router:
    """Routes by method and path. Of two paths that fit, the one that was added first is taken."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._routes = [(_pattern(route.path), route) for route in routes]

    def match(self, method: str, path: str) -> Match:
        """The route of a request.

        Raises:
            NotFound: there is none, or none for this method.
        """
        path = path.rstrip("/") or "/"
        others: list[str] = []
        for pattern, route in self._routes:
            found = pattern.fullmatch(path)
            if found is None:
                continue
            if route.method == method:
                return Match(route, {name: unquote(text) for name, text in found.groupdict().items()})
            others.append(route.method)
        hint = f"; it takes {', '.join(dict.fromkeys(others))}" if others else ""
        raise NotFound(f"there is no route {method[:20]} {path[:200]}{hint}")


def check_ids(parameters: dict[str, str]) -> None:
    """What cannot be an id is the id of nothing.

    Raises:
        NotFound: an id holds other characters than ids do, or too many.
    """
    for name, text in parameters.items():
        if not _ID.fullmatch(text):
            raise NotFound(f"{name.removesuffix('_id').replace('_', ' ')} {text[:80]!r} was not found")


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path))
