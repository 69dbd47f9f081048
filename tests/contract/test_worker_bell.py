"""The worker's end of the doorbell against the platform's end, on the local SQS."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from mango.aws.clients import Clients
from mango.aws.doorbell import SqsDoorbell
from mango_worker.errors import QueueUnavailable, WorkerError
from mango_worker.supervisor.bell import SqsBell
from mango_worker.supervisor.rung_claims import Ring
from tests.support.roto import RotoServer

NEVER = threading.Event()


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker's own, and nothing else that boto3 might find."""
    _forget(monkeypatch)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")


@pytest.fixture
def door(roto_clients: Clients, pk: str) -> Iterator[tuple[SqsDoorbell, str, str]]:
    """A doorbell, an environment of it, and the queue's URL."""
    doorbell, environment = SqsDoorbell(roto_clients.sqs, "mango"), f"env_{pk[2:24]}"
    doorbell.open(environment)
    yield doorbell, environment, doorbell.queue_url(environment)
    doorbell.close(environment)


def left(clients: Clients, url: str) -> set[str]:
    """How many messages the queue has: visible, and received but not deleted."""
    found = clients.sqs.get_queue_attributes(
        QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    )
    return set(found["Attributes"].values())


@pytest.mark.usefixtures("credentials")
def test_hears_a_ring_while_it_waits_and_deletes_it(roto_clients: Clients, door: tuple[SqsDoorbell, str, str]) -> None:
    doorbell, environment, url = door
    heard: list[Ring | None] = []
    waiter = threading.Thread(target=lambda: heard.append(SqsBell(url).wait(NEVER)))
    waiter.start()
    doorbell.ring(environment, "work_1")
    waiter.join(25)
    (ring,) = heard
    assert ring is not None and ring.work_id == "work_1"
    SqsBell(url).delete(ring)
    assert left(roto_clients, url) == {"0"}


@pytest.mark.usefixtures("credentials")
@pytest.mark.parametrize("body", ["nonsense", "[]", "null", "{}", json.dumps({"work_id": 7})])
def test_messages_of_others_name_nothing(roto_clients: Clients, door: tuple[SqsDoorbell, str, str], body: str) -> None:
    _, _, url = door
    roto_clients.sqs.send_message(QueueUrl=url, MessageBody=body)
    ring = SqsBell(url).wait(NEVER)
    assert ring is not None and ring.work_id == ""


@pytest.mark.usefixtures("credentials")
def test_a_stop_ends_the_wait_at_once(door: tuple[SqsDoorbell, str, str]) -> None:
    stop = threading.Event()
    threading.Timer(0.2, stop.set).start()
    began = time.monotonic()
    assert SqsBell(door[2]).wait(stop) is None
    assert time.monotonic() - began < 10


@pytest.mark.usefixtures("credentials")
def test_a_queue_that_is_not_there(roto: RotoServer) -> None:
    with pytest.raises(WorkerError, match="there is no queue"):
        SqsBell(f"{roto.endpoint}/123456789012/mango-env-env_none").wait(NEVER)


@pytest.mark.usefixtures("credentials")
def test_a_queue_that_cannot_be_reached_may_be_later() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/123456789012/mango-env-env_1"
    with pytest.raises(QueueUnavailable):
        SqsBell(url).wait(NEVER)


def test_without_credentials_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    _forget(monkeypatch)
    with pytest.raises(WorkerError, match="no AWS credentials"):
        SqsBell("https://sqs.eu-west-1.amazonaws.com/123456789012/mango-env-env_1")


def test_a_profile_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    _forget(monkeypatch)
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(WorkerError, match="nobody"):
        SqsBell("https://sqs.eu-west-1.amazonaws.com/123456789012/mango-env-env_1")


@pytest.mark.usefixtures("credentials")
def test_the_queues_own_region_and_endpoint_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def where(url: str) -> str:
        return str(SqsBell(url)._client.meta.endpoint_url)

    assert where("https://sqs.eu-west-1.amazonaws.com/123456789012/q") == "https://sqs.eu-west-1.amazonaws.com"
    assert where("http://localhost:4566/000000000000/q") == "http://localhost:4566"
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    assert where("http://localhost:4566/000000000000/q") == "http://127.0.0.1:9"
    assert where("https://sqs.eu-west-1.amazonaws.com/123456789012/q") == "http://127.0.0.1:9"
