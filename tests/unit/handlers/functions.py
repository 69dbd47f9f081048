"""The Lambda functions on a store of their own: real adapters on a roto-server, as their variables name it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mango.aws.blobs import S3Blobs
from mango.aws.clients import Clients
from mango.aws.store import DynamoStore
from mango.aws.table import create_table
from mango.handlers import api, sweep, trouble
from mango.handlers import round as round_
from mango.memory import MemoryDoorbell, RecordingOrchestrator
from mango.services.context import Context
from mango.services.keys import ensure_key
from mango.system import SystemClock, SystemIds
from tests.support.roto import RotoServer

Json = dict[str, Any]

EVENTS = Path(__file__).parents[3] / "examples" / "events"
KEY = "sk-mango-local-development"
TABLE = "mango-handlers"
FUNCTIONS: tuple[ModuleType, ...] = (api, round_, trouble, sweep)


class LambdaContext:
    """The part of the runtime's context that is looked at."""

    aws_request_id = "00000000-0000-4000-8000-00000000000f"


def example(name: str) -> Json:
    """An event of `examples/events/`."""
    event: Json = json.loads((EVENTS / f"{name}.json").read_text("utf-8"))
    return event


class Deployed:
    """A table and a bucket with the development key, and what a client does."""

    def __init__(self, server: RotoServer) -> None:
        clients = Clients(server.settings)
        create_table(TABLE, server.settings)
        blobs = S3Blobs(clients.s3, TABLE)
        blobs.create_bucket("us-east-1")
        clock = SystemClock()
        self.ctx = Context(
            store=DynamoStore(clients.dynamodb, TABLE),
            blobs=blobs,
            doorbell=MemoryDoorbell(),
            orchestrator=RecordingOrchestrator(),
            clock=clock,
            ids=SystemIds(clock),
        )
        ensure_key(self.ctx, KEY)
        self.environ = {
            "MANGO_TABLE": TABLE,
            "MANGO_BUCKET": TABLE,
            "MANGO_QUEUE_PREFIX": "mango-handlers",
            "MANGO_STATE_MACHINE_ARN": "arn:aws:states:us-east-1:123456789012:stateMachine:mango-turn",
            "MANGO_STAGE": "test",
            "MANGO_MODEL": "offline",
            "MANGO_OFFLINE_THINK_SECONDS": "0",
            "AWS_ENDPOINT_URL": server.endpoint,
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
        }

    def call(self, method: str, path: str, body: Json | None = None) -> Json:
        """Sends a request through the API function; it must succeed."""
        event = example("api-post")
        event |= {"httpMethod": method, "path": path, "body": json.dumps(body) if body is not None else None}
        answer = api.handler(event, LambdaContext())
        assert answer["statusCode"] == 200, answer
        shown: Json = json.loads(answer["body"])
        return shown

    def session(self, words: str) -> Json:
        """A session with a message, and the ids of the execution that was started for it."""
        agent = self.call("POST", "/v1/agents", {"name": "Ada", "model": "m"})
        environment = self.call("POST", "/v1/environments", {"name": "Here"})
        message = {"type": "user.message", "content": [{"type": "text", "text": words}]}
        body = {"agent": agent["id"], "environment_id": environment["id"], "initial_events": [message]}
        session = self.call("POST", "/v1/sessions", body)["id"]
        thread = session.replace("sesn_", "sthr_")
        return {"session_id": session, "thread_id": thread, "execution": f"{thread}-1"}

    def types(self, session_id: str) -> list[str]:
        events = self.call("GET", f"/v1/sessions/{session_id}/events?limit=1000".partition("?")[0])["data"]
        return [event["type"] for event in events]


@contextmanager
def wired(deployed: Deployed, monkeypatch: pytest.MonkeyPatch, **changes: str) -> Iterator[Deployed]:
    """Fresh functions with the variables of the deployment."""
    for name, value in (deployed.environ | changes).items():
        monkeypatch.setenv(name, value)
    forget()
    yield deployed
    forget()


def forget() -> None:
    """Makes each function wire itself anew."""
    for function in FUNCTIONS:
        function._process.cache_clear()
    # Powertools sets a logger up once a process, on the stderr of that moment.
    logger: Any = logging.getLogger("mango")
    logger.handlers.clear()
    logger.setLevel(logging.NOTSET)
    logger.init = False
    logger.powertools_handler = None


def metrics(text: str) -> dict[str, float]:
    """The sums of what was written in EMF."""
    sums: dict[str, float] = {}
    for line in text.splitlines():
        entry = json.loads(line)
        for name in [one["Name"] for group in entry["_aws"]["CloudWatchMetrics"] for one in group["Metrics"]]:
            values = entry[name] if isinstance(entry[name], list) else [entry[name]]
            sums[name] = sums.get(name, 0) + sum(values)
    return sums


def lines(text: str) -> list[Json]:
    """What was logged."""
    return [json.loads(line) for line in text.splitlines()]
