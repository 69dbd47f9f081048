"""Events of a session. Which types a work token may send is decided by the use case."""

from __future__ import annotations

from mango.api.auth import EVERYBODY
from mango.api.messages import NoQuery, Request, Response, json_response
from mango.api.router import Route
from mango.domain.wire.events import EventListQuery, EventSend
from mango.services import event_list, events
from mango.services.context import Context


def send(ctx: Context, request: Request) -> Response:
    request.query(NoQuery)
    body = request.json(EventSend)
    return json_response(events.send(ctx, request.who, request.parameters["session_id"], body))


def list_page(ctx: Context, request: Request) -> Response:
    query = request.query(EventListQuery)
    return json_response(event_list.list_page(ctx, request.who, request.parameters["session_id"], query))


ROUTES = (
    Route("POST", "/v1/sessions/{session_id}/events", send, EVERYBODY),
    Route("GET", "/v1/sessions/{session_id}/events", list_page, EVERYBODY),
)
