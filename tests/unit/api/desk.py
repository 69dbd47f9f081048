"""An API on ports in memory, with one credential of every kind, and calls as an API Gateway would make them."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from mango.api.app import Api, create_api
from mango.domain.principal import Credential, Principal
from mango.services import keys
from tests.support.world import World, message

Json = dict[str, Any]
WORKSPACE_KEY = "sk-mango-local-development"
WORKSPACE_ID = "wrkspc_test"


@dataclass(frozen=True)
class Answer:
    """An answer, decoded."""

    status: int
    headers: dict[str, str]
    json: Any
    body: bytes

    @property
    def error(self) -> tuple[int, str, str]:
        """Status, type and message of an error; checks its envelope."""
        assert self.json["type"] == "error"
        assert self.json["request_id"] == self.headers["request-id"]
        return self.status, self.json["error"]["type"], self.json["error"]["message"]


class Desk:
    """What a test talks to."""

    def __init__(self) -> None:
        self.world = World()
        self.ctx = self.world.ctx
        self.api: Api = create_api(self.ctx)
        keys.ensure_key(self.ctx, WORKSPACE_KEY, WORKSPACE_ID)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = WORKSPACE_KEY,
        headers: Json | None = None,
        raw: bytes | None = None,
    ) -> Answer:
        """A request with a JSON body, or with raw bytes that are called JSON unless `headers` say otherwise."""
        data = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        path, _, query = path.partition("?")
        sent = {"Content-Type": "application/json", **(headers or {})}
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        values: dict[str, list[str]] = {}
        for name, value in parse_qsl(query, keep_blank_values=True):
            values.setdefault(name, []).append(value)
        event = {
            "httpMethod": method,
            "path": path,
            "headers": sent,
            "multiValueQueryStringParameters": values or None,
            "body": base64.b64encode(data).decode() if data else None,
            "isBase64Encoded": True,
        }
        return read(self.api(event, None))

    def get(self, path: str, **options: Any) -> Answer:
        return self.call("GET", path, **options)

    def post(self, path: str, body: Any = None, **options: Any) -> Answer:
        return self.call("POST", path, body, **options)

    def agent(self, **fields: Any) -> Json:
        return self.made(self.post("/v1/agents", {"name": "Ada", "model": "m", **fields}))

    def environment(self, **fields: Any) -> Json:
        return self.made(self.post("/v1/environments", {"name": "Here", **fields}))

    def session(self, *words: str, environment_id: str | None = None) -> Json:
        body: Json = {"agent": self.agent()["id"], "environment_id": environment_id or self.environment()["id"]}
        if words:
            body["initial_events"] = [message(one) for one in words]
        return self.made(self.post("/v1/sessions", body))

    def environment_key(self, environment_id: str) -> str:
        return keys.create_key(self.ctx, WORKSPACE_ID, "supervisor", environment_id).token

    def work_token(self) -> tuple[Principal, str, str]:
        """The holder and token of acknowledged work that runs a tool call, and the id of that call."""
        agent = self.agent(tools=[{"type": "agent_toolset_20260401"}])
        environment = self.environment()
        body = {"agent": agent["id"], "environment_id": environment["id"], "initial_events": [message("go")]}
        session = self.made(self.post("/v1/sessions", body))
        self.world.drive(_call_bash())
        (call,) = self.world.open_calls(session["id"])
        work = self.made(self.get(f"/v1/environments/{environment['id']}/work/poll"))
        path = f"/v1/environments/{environment['id']}/work/{work['id']}"
        self.made(self.post(f"{path}/ack"))
        token = json.loads(base64.urlsafe_b64decode(work["secret"]))["sessions_token"]
        self.made(self.post(f"{path}/heartbeat?expected_last_heartbeat=NO_HEARTBEAT", token=token))
        holder = Principal(Credential.WORK, WORKSPACE_ID, work["id"], environment["id"], session["id"], work["id"])
        return holder, token, call

    @staticmethod
    def made(answer: Answer) -> Json:
        assert answer.status == 200, answer.body
        made: Json = answer.json
        return made


def _call_bash() -> Any:
    from tests.support.world import tools

    return tools(("bash", {"command": "ls"}))


def read(response: Json) -> Answer:
    """The proxy answer as a client would see it."""
    body = response["body"]
    data = base64.b64decode(body) if response["isBase64Encoded"] else body.encode()
    headers = dict(response["headers"])
    assert headers["request-id"].startswith("req_")
    shown = json.loads(data) if headers.get("content-type") == "application/json" else None
    return Answer(response["statusCode"], headers, shown, data)
