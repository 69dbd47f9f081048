"""The doorbell on SQS: rings arrive, name work and nothing else, and never raise."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from mango.aws.clients import Clients
from mango.aws.doorbell import RECEIVES, SqsDoorbell
from tests.contract.backends import Backend
from tests.support.roto import RotoServer


@pytest.fixture
def clients(backend: Backend) -> Clients:
    if backend.clients is None:
        pytest.skip("the bell in memory is tested in tests/unit/memory")
    return backend.clients


@pytest.fixture
def environment(pk: str) -> str:
    return f"env_{pk[2:24]}"


def heard(clients: Clients, url: str) -> Iterator[Any]:
    while messages := clients.sqs.receive_message(QueueUrl=url).get("Messages"):
        for message in messages:
            clients.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            yield json.loads(message["Body"])


def test_a_ring_names_the_work(clients: Clients, environment: str) -> None:
    bell = SqsDoorbell(clients.sqs, "mango", retention=3600)
    bell.ring(environment, "work_1")
    SqsDoorbell(clients.sqs, "mango", retention=3600).ring(environment, "work_2")
    url = bell.queue_url(environment)
    assert url.endswith(f"/mango-env-{environment}")
    assert sorted(heard(clients, url), key=str) == [{"work_id": "work_1"}, {"work_id": "work_2"}]
    attributes = clients.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["MessageRetentionPeriod"])
    assert attributes["Attributes"] == {"MessageRetentionPeriod": "3600"}


def test_environments_have_queues_of_their_own(clients: Clients, environment: str) -> None:
    bell = SqsDoorbell(clients.sqs, "mango")
    bell.ring(f"{environment}x", "work_1")
    assert list(heard(clients, bell.queue_url(environment))) == []


def test_a_queue_with_other_attributes_is_used_as_it_is(clients: Clients, environment: str) -> None:
    first = SqsDoorbell(clients.sqs, "mango", retention=3600)
    first.ring(environment, "work_1")
    SqsDoorbell(clients.sqs, "mango", retention=7200).ring(environment, "work_2")
    assert len(list(heard(clients, first.queue_url(environment)))) == 2


def test_a_queue_that_was_deleted_is_made_again(roto_clients: Clients, environment: str) -> None:
    bell = SqsDoorbell(roto_clients.sqs, "mango")
    bell.ring(environment, "work_1")
    roto_clients.sqs.delete_queue(QueueUrl=bell.queue_url(environment))
    bell.ring(environment, "work_2")
    assert list(heard(roto_clients, bell.queue_url(environment))) == [{"work_id": "work_2"}]


def test_a_queue_is_made_and_deleted_with_its_environment(clients: Clients, environment: str) -> None:
    bell = SqsDoorbell(clients.sqs, "mango")
    for _ in range(2):
        bell.open(environment)
        SqsDoorbell(clients.sqs, "mango").open(environment)
    url = clients.sqs.get_queue_url(QueueName=f"mango-env-{environment}")["QueueUrl"]
    kept = clients.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["MessageRetentionPeriod"])
    assert kept["Attributes"] == {"MessageRetentionPeriod": str(14 * 86_400)}
    for _ in range(2):
        bell.close(environment)
    with pytest.raises(ClientError, match=r"NonExistentQueue|QueueDoesNotExist"):
        clients.sqs.get_queue_url(QueueName=f"mango-env-{environment}")


def test_what_no_worker_deletes_goes_to_the_dead_letters(clients: Clients, environment: str) -> None:
    dead = clients.sqs.create_queue(QueueName=f"dead-{environment}")["QueueUrl"]
    arn = clients.sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    bell = SqsDoorbell(clients.sqs, "mango", dead_letters=arn)
    bell.ring(environment, "work_1")
    url = bell.queue_url(environment)
    for _ in range(RECEIVES):
        assert clients.sqs.receive_message(QueueUrl=url, VisibilityTimeout=0)["Messages"]
    assert "Messages" not in clients.sqs.receive_message(QueueUrl=url, VisibilityTimeout=0)
    assert list(heard(clients, dead)) == [{"work_id": "work_1"}]


def test_neither_opening_nor_closing_raises(
    roto: RotoServer, environment: str, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        clients = Clients(replace(roto.settings, endpoint_url=f"http://127.0.0.1:{free.getsockname()[1]}"))
        with caplog.at_level(logging.WARNING):
            SqsDoorbell(clients.sqs, "mango").open(environment)
            SqsDoorbell(clients.sqs, "mango").close(environment)
        clients.close()
    assert caplog.text.count(environment) == 2


def test_a_ring_never_raises(roto: RotoServer, environment: str, caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        clients = Clients(replace(roto.settings, endpoint_url=f"http://127.0.0.1:{free.getsockname()[1]}"))
        with caplog.at_level(logging.WARNING):
            SqsDoorbell(clients.sqs, "mango").ring(environment, "work_1")
        clients.close()
    assert environment in caplog.text


def test_nothing_is_heard_here(clients: Clients, environment: str) -> None:
    bell = SqsDoorbell(clients.sqs, "mango")
    bell.ring(environment, "work_1")
    assert not bell.hears
    assert bell.wait(environment, 60.0) is False
