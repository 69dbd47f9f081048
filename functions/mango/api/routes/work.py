"""Work of an environment: what its workers call (wire contract, section 4)."""

from __future__ import annotations

from mango.api.auth import EVERYBODY, WITH_ENVIRONMENT
from mango.api.messages import NoQuery, Request, Response, json_response
from mango.api.router import Route
from mango.domain.wire.work import HeartbeatQuery, PollQuery, StopBody, WorkListQuery
from mango.services import work
from mango.services.context import Context

MAX_WORKER_ID = 256


def poll(ctx: Context, request: Request) -> Response:
    query = request.query(PollQuery)
    worker_id = request.headers.get("anthropic-worker-id", "")[:MAX_WORKER_ID] or None
    return json_response(work.poll(ctx, request.who, request.parameters["environment_id"], query, worker_id))


def stats(ctx: Context, request: Request) -> Response:
    request.query(NoQuery)
    return json_response(work.stats(ctx, request.who, request.parameters["environment_id"]))


def list_page(ctx: Context, request: Request) -> Response:
    query = request.query(WorkListQuery)
    environment_id = request.parameters["environment_id"]
    return json_response(work.list_page(ctx, request.who, environment_id, query.limit, query.page))


def retrieve(ctx: Context, request: Request) -> Response:
    request.query(NoQuery)
    return json_response(work.retrieve(ctx, request.who, *_ids(request)))


def acknowledge(ctx: Context, request: Request) -> Response:
    request.nothing()
    return json_response(work.acknowledge(ctx, request.who, *_ids(request)))


def heartbeat(ctx: Context, request: Request) -> Response:
    query = request.query(HeartbeatQuery)
    return json_response(work.heartbeat(ctx, request.who, *_ids(request), query))


def stop(ctx: Context, request: Request) -> Response:
    request.query(NoQuery)
    body = request.json(StopBody, optional=True)
    return json_response(work.stop(ctx, request.who, *_ids(request), body))


def _ids(request: Request) -> tuple[str, str]:
    return request.parameters["environment_id"], request.parameters["work_id"]


_ALL = "/v1/environments/{environment_id}/work"
_ONE = _ALL + "/{work_id}"
ROUTES = (
    Route("GET", f"{_ALL}/poll", poll, WITH_ENVIRONMENT),
    Route("GET", f"{_ALL}/stats", stats, WITH_ENVIRONMENT),
    Route("GET", _ALL, list_page, WITH_ENVIRONMENT),
    Route("GET", _ONE, retrieve),
    Route("POST", f"{_ONE}/ack", acknowledge, WITH_ENVIRONMENT),
    Route("POST", f"{_ONE}/heartbeat", heartbeat, EVERYBODY),
    Route("POST", f"{_ONE}/stop", stop, EVERYBODY),
)
