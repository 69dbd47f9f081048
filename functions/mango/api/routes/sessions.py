"""Sessions."""

from __future__ import annotations

from mango.api.auth import EVERYBODY
from mango.api.messages import NoQuery, Request, Response, json_response
from mango.api.router import Route
from mango.domain.wire.sessions import SessionCreate, SessionListQuery
from mango.services import deletion, session_list, sessions
from mango.services.context import Context


def create(ctx: Context, request: Request) -> Response:
    request.query(NoQuery)
    return json_response(sessions.create(ctx, request.who, request.json(SessionCreate)))


def list_page(ctx: Context, request: Request) -> Response:
    return json_response(session_list.list_page(ctx, request.who, request.query(SessionListQuery)))


def retrieve(ctx: Context, request: Request) -> Response:
    request.query(NoQuery)
    return json_response(sessions.retrieve(ctx, request.who, request.parameters["session_id"]))


def archive(ctx: Context, request: Request) -> Response:
    request.nothing()
    return json_response(sessions.archive(ctx, request.who, request.parameters["session_id"]))


def delete(ctx: Context, request: Request) -> Response:
    request.query(NoQuery)
    return json_response(deletion.delete(ctx, request.who, request.parameters["session_id"]))


ROUTES = (
    Route("POST", "/v1/sessions", create),
    Route("GET", "/v1/sessions", list_page),
    Route("GET", "/v1/sessions/{session_id}", retrieve, EVERYBODY),
    Route("POST", "/v1/sessions/{session_id}/archive", archive),
    Route("DELETE", "/v1/sessions/{session_id}", delete),
)
