"""Environments."""

from __future__ import annotations

from mango.api.messages import NoQuery, Request, Response, json_response
from mango.api.router import Route
from mango.domain.wire.environments import EnvironmentCreate, EnvironmentListQuery
from mango.services import environments
from mango.services.context import Context


def create(ctx: Context, request: Request) -> Response:
    request.query(NoQuery)
    return json_response(environments.create(ctx, request.who, request.json(EnvironmentCreate)))


def list_page(ctx: Context, request: Request) -> Response:
    return json_response(environments.list_page(ctx, request.who, request.query(EnvironmentListQuery)))


def retrieve(ctx: Context, request: Request) -> Response:
    request.query(NoQuery)
    return json_response(environments.retrieve(ctx, request.who, request.parameters["environment_id"]))


def archive(ctx: Context, request: Request) -> Response:
    request.nothing()
    return json_response(environments.archive(ctx, request.who, request.parameters["environment_id"]))


ROUTES = (
    Route("POST", "/v1/environments", create),
    Route("GET", "/v1/environments", list_page),
    Route("GET", "/v1/environments/{environment_id}", retrieve),
    Route("POST", "/v1/environments/{environment_id}/archive", archive),
)
