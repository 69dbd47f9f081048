"""Starting executions: on moto's Step Functions, and against answers that no emulator gives."""

from __future__ import annotations

import json
import logging
from typing import Any

import boto3
import pytest
from botocore.exceptions import BotoCoreError, ConnectTimeoutError, ReadTimeoutError
from botocore.stub import Stubber
from moto import mock_aws

from mango.aws.clients import AwsSettings, Clients
from mango.aws.orchestrator import NAME_LIMIT, TRIES, StepFunctionsOrchestrator
from mango.services.session_access import primary_thread_id
from mango.system import SystemIds

ARN = "arn:aws:states:us-east-1:123456789012:stateMachine:mango-turn"
SESSION, THREAD = "sesn_01x", "sthr_01x"
MACHINE = json.dumps({"StartAt": "Wait", "States": {"Wait": {"Type": "Wait", "Seconds": 1000, "End": True}}})


def made_client() -> Any:
    clients = Clients(AwsSettings(access_key_id="test", secret_access_key="test"))
    return clients.other("stepfunctions", attempts=1)


class Stubbed:
    """An orchestrator on prepared answers."""

    def __init__(self) -> None:
        client = boto3.session.Session("test", "test", region_name="us-east-1").client("stepfunctions")
        self.stub = Stubber(client)
        self.pauses: list[float] = []
        self.orchestrator = StepFunctionsOrchestrator(client, ARN, sleep=self.pauses.append)

    def fails(self, code: str, status: int = 400, times: int = 1) -> None:
        for _ in range(times):
            self.stub.add_client_error("start_execution", code, http_status_code=status)

    def works(self) -> None:
        answer = {"executionArn": f"{ARN}:x", "startDate": "2026-11-29T17:00:00Z"}
        self.stub.add_response("start_execution", answer)

    def start(self) -> None:
        with self.stub:
            self.orchestrator.start(SESSION, THREAD, 7)
        self.stub.assert_no_pending_responses()


def test_an_execution_is_started_once_for_each_number() -> None:
    with mock_aws():
        client = made_client()
        machine = client.create_state_machine(
            name="mango-turn", definition=MACHINE, roleArn="arn:aws:iam::123456789012:role/turn"
        )["stateMachineArn"]
        orchestrator = StepFunctionsOrchestrator(client, machine)
        for wake in (1, 2, 2, 1):
            orchestrator.start(SESSION, THREAD, wake)
        executions = client.list_executions(stateMachineArn=machine)["executions"]
        assert sorted(one["name"] for one in executions) == [f"{THREAD}-1", f"{THREAD}-2"]
        described = client.describe_execution(executionArn=executions[0]["executionArn"])
        name = executions[0]["name"]
        assert json.loads(described["input"]) == {"session_id": SESSION, "thread_id": THREAD, "execution": name}


def test_names_and_inputs_are_small() -> None:
    session = SystemIds().new("sesn")
    thread = primary_thread_id(session)
    name = f"{thread}-{10**12}"
    assert len(name) <= NAME_LIMIT
    assert len(json.dumps({"session_id": session, "thread_id": thread, "execution": name})) < 1024


def test_one_that_exists_is_success(caplog: pytest.LogCaptureFixture) -> None:
    stubbed = Stubbed()
    stubbed.fails("ExecutionAlreadyExists")
    stubbed.start()
    assert (stubbed.pauses, caplog.records) == ([], [])


@pytest.mark.parametrize(("code", "status"), [("ThrottlingException", 400), ("InternalFailure", 500), ("X", 503)])
def test_what_may_help_is_tried_again_after_a_pause(code: str, status: int, caplog: pytest.LogCaptureFixture) -> None:
    stubbed = Stubbed()
    stubbed.fails(code, status, times=TRIES - 1)
    stubbed.works()
    stubbed.start()
    assert len(stubbed.pauses) == TRIES - 1
    assert 0 < stubbed.pauses[0] <= 0.2
    assert caplog.records == []


def test_after_the_last_try_it_is_left_to_the_sweeper(caplog: pytest.LogCaptureFixture) -> None:
    stubbed = Stubbed()
    stubbed.fails("ThrottlingException", times=TRIES)
    stubbed.start()
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert f"{THREAD}-7 was not started and is left to the sweeper" in record.getMessage()


@pytest.mark.parametrize("code", ["StateMachineDoesNotExist", "AccessDeniedException", "InvalidName"])
def test_what_cannot_help_is_not_tried_again(code: str, caplog: pytest.LogCaptureFixture) -> None:
    stubbed = Stubbed()
    stubbed.fails(code)
    stubbed.start()
    assert (stubbed.pauses, len(caplog.records)) == ([], 1)


class Broken:
    """A client whose connection fails, then may work."""

    def __init__(self, *failures: BotoCoreError) -> None:
        self.failures = list(failures)
        self.calls = 0

    def start_execution(self, **_: str) -> None:
        self.calls += 1
        if self.failures:
            raise self.failures.pop(0)


def test_a_broken_connection_is_tried_again() -> None:
    client = Broken(ConnectTimeoutError(endpoint_url="x"), ReadTimeoutError(endpoint_url="x"))
    StepFunctionsOrchestrator(client, ARN, sleep=lambda _: None).start(SESSION, THREAD, 1)
    assert client.calls == TRIES


def test_one_that_stays_broken_raises_nothing(caplog: pytest.LogCaptureFixture) -> None:
    client = Broken(*[ReadTimeoutError(endpoint_url="x")] * TRIES)
    StepFunctionsOrchestrator(client, ARN, sleep=lambda _: None).start(SESSION, THREAD, 1)
    assert (client.calls, len(caplog.records)) == (TRIES, 1)
