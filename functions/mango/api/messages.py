"""A request as routes see it, and the response they give, whatever carried them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import unquote_plus

from mango.api.json_body import decode
from mango.domain.errors import InvalidRequest
from mango.domain.ledger import dump_json
from mango.domain.principal import Principal
from mango.domain.wire.base import WireModel
from mango.domain.wire.query import QueryModel

Query = TypeVar("Query", bound=QueryModel)
Body = TypeVar("Body", bound=WireModel)


class NoQuery(QueryModel):
    """For routes without parameters."""


class NoBody(WireModel):
    """For actions that take nothing."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Attributes:
        path: as it was sent, still percent-encoded.
        parameters: ids from the path, by name; set by the router.
        query_values: decoded query parameters, each with all its values.
        headers: by lower-case name.
        body: the whole body, empty where `chunks` carries it.
        chunks: the body as it arrives, for uploads that must not be held in memory.
        principal: who asks; set by the router on routes that are not public.
    """

    method: str
    path: str
    query_values: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: bytes = b""
    chunks: Iterator[bytes] | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    principal: Principal | None = None

    @property
    def who(self) -> Principal:
        """The principal of a route that needs one."""
        assert self.principal is not None, "public routes have no principal"
        return self.principal

    def query(self, model: type[Query]) -> Query:
        """The query string, checked; every route calls this, so that nothing unknown is ignored."""
        return model.from_query(self.query_values)

    def json(self, model: type[Body], *, optional: bool = False) -> Body:
        """The JSON body, checked; with `optional` an empty body stands for `{}`."""
        if not self.body.strip():
            if optional:
                return model.parse({})
            raise InvalidRequest("is required", path="body")
        return model.parse(decode(self.body, self.headers))

    def nothing(self) -> None:
        """For actions: no query, and a body that is empty or `{}`."""
        self.query(NoQuery)
        self.json(NoBody, optional=True)

    def stream(self) -> Iterator[bytes]:
        """The body in pieces."""
        return self.chunks if self.chunks is not None else iter((self.body,))


@dataclass(frozen=True, slots=True)
class Response:
    """One response; `chunks` in place of `body` where it is long."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    chunks: Iterator[bytes] | None = None


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """JSON; `None` is the text `null` (decision 10)."""
    return Response(status, {"content-type": "application/json", **(headers or {})}, dump_json(value).encode())


def from_event(event: Mapping[str, Any]) -> Request:
    """The request that an API Gateway REST proxy event describes.

    Raises:
        InvalidRequest: its body is not the base64 it claims to be.
    """
    return Request(
        method=str(event.get("httpMethod") or "GET").upper(),
        path=str(event.get("path") or "/"),
        query_values=_query(event),
        headers=_headers(event),
        body=_body(event),
    )


def to_event(response: Response) -> dict[str, Any]:
    """The proxy answer; contents of files go as base64."""
    answer: dict[str, Any] = {"statusCode": response.status, "headers": dict(response.headers)}
    if response.chunks is None:
        return {**answer, "body": response.body.decode(), "isBase64Encoded": False}
    content = b"".join(response.chunks)
    return {**answer, "body": base64.b64encode(content).decode(), "isBase64Encoded": True}


def _query(event: Mapping[str, Any]) -> dict[str, list[str]]:
    many = event.get("multiValueQueryStringParameters")
    if not many:
        many = {name: [value] for name, value in (event.get("queryStringParameters") or {}).items()}
    values: dict[str, list[str]] = {}
    for name, given in many.items():
        # Some gateways and emulators leave the brackets of `types[]` encoded.
        values.setdefault(unquote_plus(name) if "%" in name else name, []).extend(str(value) for value in given)
    return values


def _headers(event: Mapping[str, Any]) -> dict[str, str]:
    headers = {name.lower(): values[-1] for name, values in (event.get("multiValueHeaders") or {}).items() if values}
    single = {name.lower(): value for name, value in (event.get("headers") or {}).items() if value is not None}
    return {**single, **headers}


def _body(event: Mapping[str, Any]) -> bytes:
    body = event.get("body")
    if not body:
        return b""
    if not event.get("isBase64Encoded"):
        return str(body).encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidRequest("is not valid base64", path="body") from None
