"""What holds for every request: routes, ids, bodies, queries, envelopes."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import Any

import pytest

from mango.api.app import ROUTES, create_api
from mango.api.messages import Request
from mango.domain.transaction import Ambiguous, StoreUnavailable
from tests.unit.api.desk import WORKSPACE_KEY, Desk, read

AGENT = {"name": "a", "model": "m"}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/v1"),
        ("GET", "/v1/nothing"),
        ("PUT", "/v1/agents"),
        ("DELETE", "/v1/agents/agent_x"),
        ("GET", "/v1/agents/agent_x/archive"),
        ("GET", "/v1//agents"),
        ("GET", "/v1/agents/a/b/c"),
        ("BREW", "/healthz"),
    ],
)
def test_unknown_routes(desk: Desk, method: str, path: str) -> None:
    status, kind, said = desk.call(method, path).error
    assert (status, kind) == (404, "not_found_error")
    assert path in said


@pytest.mark.parametrize(
    "odd",
    ["%2e%2e", "a%2Fb", "%00", "%F0%9F%A6%8A", "%ff", "a%20b", "%25", "x" * 129, "agent#1", "sesn_x", "env_x", "$ref"],
)
@pytest.mark.parametrize("path", ["agents/{}", "environments/{}", "sessions/{}", "sessions/{}/events", "files/{}"])
def test_odd_ids_are_ids_of_nothing(desk: Desk, path: str, odd: str) -> None:
    assert desk.get("/v1/" + path.format(odd)).error[:2] == (404, "not_found_error")


def test_encoded_ids_are_decoded(desk: Desk) -> None:
    agent_id = desk.agent()["id"]
    assert desk.get(f"/v1/agents/{agent_id.replace('_', '%5F')}").json["id"] == agent_id
    assert desk.get(f"/v1/agents/{agent_id}/").json["id"] == agent_id


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_every_route_names_unknown_query_parameters(desk: Desk, route: Any) -> None:
    if not route.allowed:
        return
    holder, _, _ = desk.work_token()
    path = route.path
    ids = {"environment_id": holder.environment_id, "session_id": holder.session_id, "work_id": holder.work_id}
    ids |= {"agent_id": "agent_x", "file_id": "file_x", "upload_id": "upload_x", "part_number": "1"}
    for name, value in ids.items():
        path = path.replace(f"{{{name}}}", str(value))
    status, kind, said = desk.call(route.method, f"{path}?beta=true&nonsense=1").error
    assert (status, kind, said) == (400, "invalid_request_error", "nonsense: is not a known field; remove it")


@pytest.mark.parametrize("query", ["beta=true", "beta=", "limit=1&beta=true"])
def test_old_clients_put_beta_on_the_url(desk: Desk, query: str) -> None:
    assert desk.get(f"/v1/agents?{query}").status == 200


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "body: is required"),
        (b"  ", "body: is required"),
        (b"{", "body: is not valid JSON"),
        (b'{"name": "a"} x', "body: is not valid JSON: Extra data (line 1, column 15)"),
        (b"\xff\xfe", "body: must be UTF-8"),
        (b"\xef\xbb\xbf{}", "body: is not valid JSON"),
        (b'{"name": "a", "name": "b"}', "body: holds the key 'name' twice in one object"),
        (b'{"name": NaN}', "body: holds NaN, which is not JSON"),
        (b'{"name": -Infinity}', "body: holds -Infinity, which is not JSON"),
        (b'{"name": 1e999}', "body: holds the number 1e999, which is too large"),
        (b'{"name": ' + b"9" * 5000 + b"}", "body: holds a number of 5000 digits; integers have at most 38"),
        (b"[" * 101 + b"]" * 101, "body: is nested more than 100 levels deep"),
        (b"[" * 200_000, "body: is nested more than 100 levels deep"),
        (b"[" * 100 + b"]" * 100, "body: must be an object, not an array"),
        (b"null", "body: must be an object, not null"),
        (b'"text"', "body: must be an object, not a string"),
        (b'{"name": "\\ud800", "model": "m"}', "name: holds a lone surrogate; text must be valid Unicode"),
        (b'{"\\ud800": 1, "model": "m"}', "body: holds a lone surrogate; text must be valid Unicode"),
    ],
)
def test_refused_bodies(desk: Desk, raw: bytes, said: str) -> None:
    status, kind, message = desk.post("/v1/agents", raw=raw).error
    assert (status, kind) == (400, "invalid_request_error")
    assert message.startswith(said)


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json", 200),
        ("Application/JSON; charset=UTF-8", 200),
        ('application/json; charset="utf-8"', 200),
        ("application/json; charset=latin-1", 400),
        ("text/plain", 400),
        ("", 400),
        ("application/x-www-form-urlencoded", 400),
    ],
)
def test_content_types(desk: Desk, content_type: str, status: int) -> None:
    answer = desk.post("/v1/agents", AGENT, headers={"Content-Type": content_type})
    assert answer.status == status
    if status == 400:
        assert "content-type" in answer.error[2]


def test_body_limit(desk: Desk) -> None:
    headers = {"x-api-key": WORKSPACE_KEY, "content-type": "application/json"}
    fits = b'{"name": "' + b"x" * (32 * 1024 * 1024 - 12) + b'"}'
    assert desk.api.handle(Request("POST", "/v1/agents", {}, headers, fits)).status == 400
    assert desk.api.handle(Request("POST", "/v1/agents", {}, headers, fits + b" ")).status == 413


@pytest.mark.parametrize("raw", [b"", b"{}", b" {} "])
def test_actions_take_no_body(desk: Desk, raw: bytes) -> None:
    path = f"/v1/agents/{desk.agent()['id']}/archive"
    assert desk.post(path, raw=raw, headers={"Content-Type": "application/json"}).status == 200


def test_actions_refuse_what_they_would_ignore(desk: Desk) -> None:
    path = f"/v1/agents/{desk.agent()['id']}/archive"
    assert desk.post(path, {"force": True}).error == (
        400,
        "invalid_request_error",
        "force: is not a known field; remove it",
    )


@pytest.mark.parametrize("name", ["Idempotency-Key", "idempotency-key"])
def test_what_is_not_built_is_not_ignored(desk: Desk, name: str) -> None:
    """A client that sends the header takes it for safe to post again."""
    for path in ("/v1/agents", "/v1/sessions", f"/v1/sessions/{desk.session()['id']}/events", "/v1/files"):
        answer = desk.post(path, AGENT, headers={name: "k" * 300})
        assert answer.error == (422, "invalid_request_error", "Idempotency-Key: is not supported yet; leave it out")
        assert desk.post(path, AGENT, headers={name: ""}).status == 422
    assert len(desk.get("/v1/agents").json["data"]) == 1
    assert desk.get("/v1/agents", headers={name: "k"}).status == 200
    assert desk.post("/v1/agents", AGENT, headers={name: "k"}, token=None).status == 401
    assert desk.post("/v1/nothing", AGENT, headers={name: "k"}).status == 404


def test_events_of_gateways_that_differ(desk: Desk) -> None:
    """Single-value maps, names still encoded, text bodies, missing keys."""
    session = desk.session("go")
    event: dict[str, Any] = {
        "httpMethod": "GET",
        "path": f"/v1/sessions/{session['id']}/events",
        "headers": {"x-api-key": "sk-mango-local-development"},
        "queryStringParameters": {"types%5B%5D": "user.message", "created_at%5Bgte%5D": "2020-01-01T00:00:00Z"},
    }
    listed = read(desk.api(event))
    assert [one["type"] for one in listed.json["data"]] == ["user.message"]
    made = {
        "httpMethod": "POST",
        "path": "/v1/agents",
        "multiValueHeaders": {"X-Api-Key": ["sk-mango-local-development"], "Content-Type": ["application/json"]},
        "headers": None,
        "body": json.dumps({**AGENT, "name": "Ünïcode 🦊"}, ensure_ascii=False),
    }
    assert read(desk.api(made)).json["name"] == "Ünïcode 🦊"
    assert read(desk.api({**made, "body": "!", "isBase64Encoded": True})).error[0] == 400
    assert read(desk.api({})).error[0] == 404


class Failing:
    """A store whose reads raise."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def get(self, key: object) -> None:
        raise self._error

    def ping(self) -> None:
        raise self._error


@pytest.mark.parametrize(
    ("error", "status", "retry"),
    [
        (StoreUnavailable("secret endpoint"), 503, "true"),
        (Ambiguous("secret endpoint"), 503, "true"),
        (ZeroDivisionError("secret endpoint"), 500, None),
    ],
)
@pytest.mark.parametrize("path", ["/v1/agents/agent_x", "/readyz"])
def test_failures_keep_their_text(
    desk: Desk, caplog: pytest.LogCaptureFixture, error: Exception, status: int, retry: str | None, path: str
) -> None:
    api = create_api(replace(desk.ctx, store=Failing(error)))  # type: ignore[arg-type]
    with caplog.at_level(logging.ERROR):
        answer = read(api({"httpMethod": "GET", "path": path, "headers": {"x-api-key": "sk-mango-new"}}))
    assert answer.error[:2] == (status, "api_error")
    assert b"secret" not in answer.body
    assert answer.headers.get("x-should-retry") == retry
    assert (answer.headers["request-id"] in caplog.text) == (status == 500)


def test_conflicts_say_whether_to_retry(desk: Desk) -> None:
    holder, _, _ = desk.work_token()
    path = f"/v1/environments/{holder.environment_id}/work/{holder.work_id}"
    assert desk.post(f"{path}/stop", {"force": True}).status == 200
    answer = desk.post(f"{path}/stop", {})
    assert answer.error[:2] == (409, "conflict_error")
    assert answer.headers["x-should-retry"] == "false"
    stale = desk.post(f"{path}/heartbeat?expected_last_heartbeat=x")
    assert stale.json["state"] == "stopped"
