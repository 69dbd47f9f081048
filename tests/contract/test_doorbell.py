"""The doorbell on SQS: rings arrive, name work and nothing else, and never raise."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from mango.aws.clients import Clients
from mango.aws.doorbell import SqsDoorbell
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
