"""`mango gateway` in front of a deployment, with the stock client: one base URL for requests and streams."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from anthropic import Anthropic

from tests.support.deployment import BIN, KEY, READY_SECONDS, Deployment, free_port


@contextmanager
def gateway(deployment: Deployment, log: Path) -> Iterator[str]:
    """The base URL of a gateway that knows the deployment's table and API."""
    port = free_port()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MANGO_")} | {
        "MANGO_TABLE": "mango",
        "MANGO_BUCKET": "mango",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": (deployment.data_dir / "endpoint").read_text().strip(),
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }
    command = [str(BIN / "mango"), "gateway", "--api-url", deployment.url, "--port", str(port), "--host", "127.0.0.1"]
    with log.open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + READY_SECONDS
    try:
        while not _ready(url):
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.02)
        yield url
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0, log.read_text()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", timeout=2).status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    with Deployment(tmp_path / "data") as running:
        yield running


def test_requests_and_streams_on_one_url(deployment: Deployment, tmp_path: Path) -> None:
    with (
        gateway(deployment, tmp_path / "gateway.log") as url,
        Anthropic(base_url=url, api_key=KEY, max_retries=0, timeout=30, _strict_response_validation=True) as client,
    ):
        agent = client.beta.agents.create(name="Ada", model="offline")
        environment = client.beta.environments.create(name="Here", config={"type": "self_hosted"})
        session = client.beta.sessions.create(agent=agent.id, environment_id=environment.id)
        seen = []
        with client.beta.sessions.events.stream(session.id) as stream:
            client.beta.sessions.events.send(
                session.id, events=[{"type": "user.message", "content": [{"type": "text", "text": "hello"}]}]
            )
            for event in stream:
                seen.append(event.type)
                if event.type == "session.status_idle":
                    break
        listed = [event.type for event in client.beta.sessions.events.list(session.id)]
        assert seen == listed


def test_a_stream_of_nothing_is_refused_as_the_api_would(deployment: Deployment, tmp_path: Path) -> None:
    with gateway(deployment, tmp_path / "gateway.log") as url:
        path = "/v1/sessions/sesn_x/events/stream"
        answers = [httpx.get(base + path, headers={"x-api-key": KEY}) for base in (url, deployment.url)]
        assert [answer.status_code for answer in answers] == [404, 404]
        assert answers[0].json()["error"] == answers[1].json()["error"]


def test_stopping_ends_an_open_stream_at_an_event_boundary(deployment: Deployment, tmp_path: Path) -> None:
    with deployment.http() as http:
        agent = http.post("/v1/agents", json={"name": "A", "model": "m"}).json()["id"]
        environment = http.post("/v1/environments", json={"name": "E"}).json()["id"]
        session = http.post("/v1/sessions", json={"agent": agent, "environment_id": environment}).json()["id"]
    with gateway(deployment, tmp_path / "gateway.log") as url:
        opened = httpx.stream(
            "GET", f"{url}/v1/sessions/{session}/events/stream", headers={"x-api-key": KEY}, timeout=30
        )
        stream = opened.__enter__()
        lines = stream.iter_lines()
        assert next(lines) == ": open"
    rest = list(lines)
    assert rest[-1] == ""
    opened.__exit__(None, None, None)
