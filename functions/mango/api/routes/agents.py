"""Agents."""

from __future__ import annotations

from mango.api.messages import NoQuery, Request, Response, json_response
from mango.api.router import Route
from mango.domain.wire.agents import AgentCreate, AgentListQuery, AgentRetrieveQuery
from mango.services import agents
from mango.services.context import Context


def create(ctx: Context, request: Request) -> Response:
    request.query(NoQuery)
    return json_response(agents.create(ctx, request.who, request.json(AgentCreate)))


def list_page(ctx: Context, request: Request) -> Response:
    return json_response(agents.list_page(ctx, request.who, request.query(AgentListQuery)))


def retrieve(ctx: Context, request: Request) -> Response:
    version = request.query(AgentRetrieveQuery).version
    return json_response(agents.retrieve(ctx, request.who, request.parameters["agent_id"], version))


def archive(ctx: Context, request: Request) -> Response:
    request.nothing()
    return json_response(agents.archive(ctx, request.who, request.parameters["agent_id"]))


ROUTES = (
    Route("POST", "/v1/agents", create),
    Route("GET", "/v1/agents", list_page),
    Route("GET", "/v1/agents/{agent_id}", retrieve),
    Route("POST", "/v1/agents/{agent_id}/archive", archive),
)
