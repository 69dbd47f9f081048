"""Which credential reaches which route (spec mango.md 1.5, wire contract 4.1, decision 35)."""

from __future__ import annotations

import pytest

from mango.api.app import ROUTES
from mango.api.router import Route
from mango.domain.principal import Credential
from tests.support.world import message, result
from tests.unit.api.desk import WORKSPACE_KEY, Desk

OTHER = "sk-mango-somebody-else"


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({}, "missing authorization header"),
        ({"Authorization": "Basic abc"}, "invalid authorization header"),
        ({"Authorization": "Bearer"}, "invalid authorization header"),
        ({"Authorization": "Bearer a b"}, "invalid authorization header"),
        ({"Authorization": "Bearer sk-mango-unknown"}, "invalid API key"),
        ({"Authorization": "Bearer ünknown"}, "invalid API key"),
        ({"Authorization": "Bearer " + "x" * 5000}, "invalid API key"),
        ({"Authorization": "Bearer sess_mango_xxx"}, "invalid credential"),
        ({"x-api-key": "sk-mango-unknown"}, "invalid API key"),
        ({"x-api-key": ""}, "invalid API key"),
    ],
)
def test_refused_credentials(desk: Desk, headers: dict[str, str], said: str) -> None:
    answer = desk.get("/v1/agents", token=None, headers=headers)
    assert answer.error == (401, "authentication_error", said)


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": f"Bearer {WORKSPACE_KEY}"},
        {"authorization": f"bEARER  {WORKSPACE_KEY} "},
        {"X-Api-Key": WORKSPACE_KEY},
        {"Authorization": f"Bearer {WORKSPACE_KEY}", "x-api-key": "ignored"},
    ],
)
def test_accepted_credentials(desk: Desk, headers: dict[str, str]) -> None:
    assert desk.get("/v1/agents", token=None, headers=headers).status == 200


def test_health_needs_no_credential(desk: Desk) -> None:
    assert desk.get("/healthz", token=None).status == 200
    assert desk.get("/readyz", token=None).status == 200


def _filled(path: str, environment_id: str, session_id: str) -> str:
    for name, value in (("environment_id", environment_id), ("session_id", session_id), ("work_id", "work_x")):
        path = path.replace(f"{{{name}}}", value)
    for name, value in (
        ("agent_id", "agent_x"),
        ("file_id", "file_x"),
        ("upload_id", "upload_x"),
        ("part_number", "1"),
    ):
        path = path.replace(f"{{{name}}}", value)
    return path


@pytest.mark.parametrize("route", [route for route in ROUTES if route.allowed], ids=lambda r: f"{r.method} {r.path}")
def test_scoped_credentials_reach_only_their_routes(desk: Desk, route: Route) -> None:
    holder, token, _ = desk.work_token()
    assert holder.environment_id and holder.session_id
    environment_key = desk.environment_key(holder.environment_id)
    method, path, _, allowed = route
    url = _filled(path, holder.environment_id, holder.session_id)
    as_environment = desk.call(method, url, token=environment_key)
    assert (as_environment.status == 403) == (Credential.ENVIRONMENT not in allowed), as_environment.body
    as_work = desk.call(method, url.replace("work_x", holder.work_id or ""), token=token)
    assert (as_work.status == 403) == (Credential.WORK not in allowed), as_work.body
    assert desk.call(method, url, token=OTHER).status == 401


def test_environment_key_reaches_its_own_environment_only(desk: Desk) -> None:
    own, other = desk.environment()["id"], desk.environment()["id"]
    key = desk.environment_key(own)
    mine, foreign = desk.session("go", environment_id=own), desk.session("go", environment_id=other)
    assert desk.get(f"/v1/environments/{own}/work/poll", token=key).json is None
    assert desk.get(f"/v1/environments/{own}/work/stats", token=key).status == 200
    assert desk.get(f"/v1/environments/{own}/work", token=key).status == 200
    assert desk.get(f"/v1/environments/{other}/work/poll", token=key).error[:2] == (403, "permission_error")
    assert desk.get(f"/v1/sessions/{mine['id']}", token=key).status == 200
    assert desk.get(f"/v1/sessions/{mine['id']}/events", token=key).status == 200
    assert desk.get(f"/v1/sessions/{foreign['id']}", token=key).status == 404
    assert desk.get(f"/v1/sessions/{foreign['id']}/events", token=key).status == 404


def test_work_token_reaches_its_own_session_and_work_only(desk: Desk) -> None:
    holder, token, call = desk.work_token()
    session, other = holder.session_id, desk.session("go")["id"]
    work = f"/v1/environments/{holder.environment_id}/work"
    assert desk.get(f"/v1/sessions/{session}", token=token).status == 200
    assert desk.get(f"/v1/sessions/{other}", token=token).status == 403
    assert desk.post(f"{work}/work_other/stop", {}, token=token).status == 403
    assert desk.get(f"{work}/poll", token=token).status == 403
    said = desk.post(f"/v1/sessions/{session}/events", {"events": [message("hi")]}, token=token)
    assert said.error[:2] == (403, "permission_error")
    done = desk.post(f"/v1/sessions/{session}/events", {"events": [result(call)]}, token=token)
    assert done.json["data"][0]["type"] == "user.tool_result"
    assert desk.post(f"{work}/{holder.work_id}/stop", {"force": True}, token=token).json["state"] == "stopped"
    assert desk.get(f"/v1/sessions/{session}", token=token).status == 401


def test_other_workspaces_see_nothing(desk: Desk) -> None:
    from mango.services import keys

    keys.ensure_key(desk.ctx, OTHER, "wrkspc_other")
    agent, environment, session = desk.agent()["id"], desk.environment()["id"], desk.session()["id"]
    for path in (f"agents/{agent}", f"environments/{environment}", f"sessions/{session}", f"sessions/{session}/events"):
        assert desk.get(f"/v1/{path}", token=OTHER).error[:2] == (404, "not_found_error")
    for path in ("agents", "environments", "sessions", "files"):
        assert desk.get(f"/v1/{path}", token=OTHER).json["data"] == []
    assert desk.get(f"/v1/environments/{environment}/work/poll", token=OTHER).status == 404
    for path in (f"agents/{agent}", f"environments/{environment}", f"sessions/{session}"):
        assert desk.post(f"/v1/{path}/archive", token=OTHER).status == 404
