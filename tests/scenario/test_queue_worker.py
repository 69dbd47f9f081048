"""Workers at the queue of a real deployment, and work that nobody survives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from anthropic import Anthropic

from mango.aws.clients import AwsSettings, Clients
from tests.support.deployment import Deployment
from tests.support.invariants import check_history
from tests.support.workers import ProcessWorker, wait_until

SCRIPT = Path(__file__).parents[1] / "support" / "scripts" / "slow_tool.py"
ROUNDS = 3


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    with Deployment(tmp_path / "data", f"scripted:{SCRIPT}") as running:
        yield running


@pytest.fixture
def sqs(deployment: Deployment) -> Iterator[Any]:
    """The queues, as AWS's own client shows them."""
    endpoint = (deployment.data_dir / "endpoint").read_text().strip()
    clients = Clients(AwsSettings(endpoint_url=endpoint, access_key_id="test", secret_access_key="test"))
    yield clients.sqs
    clients.close()


def queue_of(sqs: Any, environment_id: str) -> str:
    return str(sqs.get_queue_url(QueueName=f"mango-env-{environment_id}")["QueueUrl"])


def session_in(client: Anthropic, environment_id: str) -> str:
    agent = client.beta.agents.create(name="Slow", model="scripted", tools=[{"type": "agent_toolset_20260401"}])
    created = client.beta.sessions.create(
        agent=agent.id,
        environment_id=environment_id,
        initial_events=[{"type": "user.message", "content": [{"type": "text", "text": "go"}]}],
    )
    return created.id


def history(client: Anthropic, session_id: str) -> list[dict[str, Any]]:
    return [event.to_dict(mode="json") for event in client.beta.sessions.events.list(session_id, limit=1000)]


def stop_reason(client: Anthropic, session_id: str) -> str:
    last = history(client, session_id)[-1]
    return str(last["stop_reason"]["type"]) if last["type"] == "session.status_idle" else ""


def test_a_worker_hears_the_queue_and_survives_what_happens_to_messages(
    deployment: Deployment, sqs: Any, tmp_path: Path
) -> None:
    client = deployment.client()
    environment_id = client.beta.environments.create(name="Host").id
    url = queue_of(sqs, environment_id)  # made with its environment, before anything rang
    log = tmp_path / "worker.log"
    with ProcessWorker(deployment.url, environment_id, tmp_path / "root", log, queue=url):
        wait_until("the worker waits", lambda: log.exists() and "waiting for work" in log.read_text())
        for body in ("nonsense", json.dumps({"work_id": "work_gone"})):
            sqs.send_message(QueueUrl=url, MessageBody=body)
        for _ in range(ROUNDS):
            session_id = session_in(client, environment_id)
            wait_until("the turn ends", lambda s=session_id: stop_reason(client, s) == "end_turn", 60)  # type: ignore[misc]
            check_history([{"processed_at": None, **event} for event in history(client, session_id)])
            for item in client.beta.environments.work.list(environment_id):
                for _ in range(2):  # late and doubled
                    sqs.send_message(QueueUrl=url, MessageBody=json.dumps({"work_id": item.id}))

        def empty() -> bool:
            names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
            return set(sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"].values()) == {"0"}

        wait_until("every message is deleted", empty, 60)
    assert log.read_text().count("claimed") == ROUNDS


def test_lost_messages_are_made_up_for(deployment: Deployment, sqs: Any, tmp_path: Path) -> None:
    client = deployment.client()
    environment_id = client.beta.environments.create(name="Host").id
    session_id = session_in(client, environment_id)
    wait_until("the tool is asked for", lambda: stop_reason(client, session_id) == "requires_action")
    url = queue_of(sqs, environment_id)
    sqs.purge_queue(QueueUrl=url)
    with ProcessWorker(deployment.url, environment_id, tmp_path / "root", tmp_path / "worker.log", queue=url):
        wait_until("the turn ends", lambda: stop_reason(client, session_id) == "end_turn", 60)


def test_a_queue_that_is_missing_is_told(deployment: Deployment, sqs: Any, tmp_path: Path) -> None:
    environment_id = deployment.client().beta.environments.create(name="Host").id
    url = queue_of(sqs, environment_id)
    sqs.delete_queue(QueueUrl=url)
    log = tmp_path / "worker.log"
    with ProcessWorker(deployment.url, environment_id, tmp_path / "root", log, queue=url) as worker:
        wait_until("it ends", lambda: worker.process.poll() is not None)
        assert worker.process.returncode == 1
    assert f"there is no queue {url}" in log.read_text()


def claim(http: httpx.Client, environment_id: str) -> dict[str, Any] | None:
    """A claim that expires at once, by somebody who is never heard of again."""
    answer = http.get(f"/v1/environments/{environment_id}/work/poll", params={"reclaim_older_than_ms": 1})
    found: dict[str, Any] | None = answer.raise_for_status().json()
    return found


def test_work_that_nobody_survives_is_parked_and_an_interrupt_frees_it(deployment: Deployment, tmp_path: Path) -> None:
    client = deployment.client()
    environment_id = client.beta.environments.create(name="Host").id
    session_id = session_in(client, environment_id)
    claims = 0

    def parked() -> bool:
        nonlocal claims
        with deployment.http() as http:
            claims += claim(http, environment_id) is not None
        return any(event["type"] == "session.error" for event in history(client, session_id))

    wait_until("the session is told", parked)
    assert claims == 5
    (error,) = [event["error"] for event in history(client, session_id) if event["type"] == "session.error"]
    assert error["type"] == "unknown_error" and "user.interrupt" in error["message"]
    client.beta.sessions.events.send(session_id, events=[{"type": "user.interrupt"}])
    go_on: Any = {"type": "user.message", "content": [{"type": "text", "text": "go"}]}
    client.beta.sessions.events.send(session_id, events=[go_on])
    with ProcessWorker(deployment.url, environment_id, tmp_path / "root", tmp_path / "worker.log"):
        wait_until("the next turn ends", lambda: stop_reason(client, session_id) == "end_turn", 60)
    check_history([{"processed_at": None, **event} for event in history(client, session_id)])
