"""Each Lambda function on an example event, and a turn through them."""

from __future__ import annotations

import base64
import json

import pytest

from mango.domain.transaction import StoreUnavailable
from mango.handlers import api, sweep, trouble
from mango.handlers import round as round_
from mango.handlers.settings import SettingsError
from mango.services import files
from mango.services.context import LAMBDA_BYTES
from mango.services.keys import DEFAULT_WORKSPACE
from tests.unit.handlers.functions import KEY, Deployed, LambdaContext, example, forget, lines, metrics

CONTEXT = LambdaContext()


def test_the_api_answers_its_example_events(deployed: Deployed) -> None:
    made = api.handler(example("api-post"), CONTEXT)
    assert (made["statusCode"], made["isBase64Encoded"]) == (200, False)
    listed = api.handler(example("api-get"), CONTEXT)
    assert json.loads(made["body"])["id"] in [agent["id"] for agent in json.loads(listed["body"])["data"]]


def test_errors_of_the_api_are_answers(deployed: Deployed) -> None:
    answer = api.handler(example("api-get") | {"path": "/v1/nothing"}, CONTEXT)
    assert answer["statusCode"] == 404
    assert json.loads(answer["body"])["error"]["type"] == "not_found_error"


@pytest.mark.parametrize("name", ["round", "trouble"])
def test_a_session_that_is_gone_ends_its_execution(deployed: Deployed, name: str) -> None:
    handler = round_.handler if name == "round" else trouble.handler
    event = example(name)
    ids = {key: event[key] for key in ("session_id", "thread_id", "execution")}
    assert handler(event, CONTEXT) == ids | ({"next": "end"} if name == "round" else {})


def test_a_turn_passes_through_api_and_round(deployed: Deployed, capfd: pytest.CaptureFixture[str]) -> None:
    ids = deployed.session("hello")
    before = capfd.readouterr()
    assert any("left to the sweeper" in line["message"] for line in lines(before.err)), "roto has no Step Functions"
    answer = round_.handler(ids | {"next": "round", "more": 1}, CONTEXT)
    assert answer == ids | {"next": "end"}
    counted = metrics(capfd.readouterr().out)
    assert (counted["Rounds"], counted["Turns"]) == (1, 1)
    assert {"ModelSeconds", "InputTokens", "OutputTokens"} <= counted.keys()
    assert deployed.types(ids["session_id"])[-1] == "session.status_idle"
    assert round_.handler(ids, CONTEXT) == ids | {"next": "end"}, "a repeated round changes nothing"


def test_every_line_names_request_session_and_thread(deployed: Deployed, capfd: pytest.CaptureFixture[str]) -> None:
    ids = deployed.session("hello")
    capfd.readouterr()
    deployed.call("GET", f"/v1/sessions/{ids['session_id']}")
    (line,) = lines(capfd.readouterr().err)
    assert line["message"] == "answered"
    assert (line["request_id"], line["session_id"]) == (CONTEXT.aws_request_id, ids["session_id"])
    assert line["api_request_id"].startswith("req_")
    trouble.handler(ids | {"error": {"Error": "X"}}, CONTEXT)
    (line,) = lines(capfd.readouterr().err)
    assert {name: line[name] for name in ids if name in line} == ids
    assert line["failure"] == {"Error": "X"}


def test_trouble_frees_the_lease_that_its_execution_holds(
    deployed: Deployed, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ids = deployed.session("hello")

    class Failing:
        name = "failing"

        def request(self, *_: object) -> None:
            raise StoreUnavailable("not now")

    monkeypatch.setattr("mango.handlers.round.choose_model", lambda *_: Failing())
    with pytest.raises(StoreUnavailable):
        round_.handler(ids, CONTEXT)
    capfd.readouterr()
    assert trouble.handler(ids, CONTEXT) == ids
    assert metrics(capfd.readouterr().out)["Retries"] == 1
    assert deployed.types(ids["session_id"])[-1] == "session.status_rescheduled"


def test_the_sweeper_counts_what_it_does(deployed: Deployed, capfd: pytest.CaptureFixture[str]) -> None:
    capfd.readouterr()
    counts = sweep.handler(example("sweep"), CONTEXT)
    counted = metrics(capfd.readouterr().out)
    assert counted == {f"Swept{name.capitalize()}": value for name, value in counts.items()}
    assert counts.keys() == {"started", "requeued", "stopped", "rung", "deleted", "lost", "failed"}


def test_data_without_ids_is_refused(deployed: Deployed) -> None:
    with pytest.raises(ValueError, match="thread_id"):
        round_.handler({"session_id": "sesn_x", "execution": "x"}, CONTEXT)


@pytest.mark.parametrize("missing", ["MANGO_TABLE", "MANGO_STATE_MACHINE_ARN", "MANGO_QUEUE_PREFIX"])
def test_a_missing_variable_is_named(deployed: Deployed, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setenv(missing, "  ")
    forget()
    with pytest.raises(SettingsError, match=missing):
        api.handler(example("api-get"), CONTEXT)


def test_an_unusable_variable_is_named_and_its_value_is_not(
    deployed: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MANGO_STATE_MACHINE_ARN", "sk-pasted-by-mistake")
    forget()
    with pytest.raises(SettingsError, match="MANGO_STATE_MACHINE_ARN") as raised:
        round_.handler(example("round"), CONTEXT)
    assert "pasted" not in str(raised.value)


def test_files_that_lambda_cannot_carry_take_other_ways(deployed: Deployed) -> None:
    size = LAMBDA_BYTES + 1
    head = b'--B\r\ncontent-disposition: form-data; name="file"; filename="big"\r\n\r\n'
    form = {"content-type": "multipart/form-data; boundary=B", "x-api-key": KEY}
    body = base64.b64encode(head + b"x" * size + b"\r\n--B--\r\n").decode()
    event = {"httpMethod": "POST", "path": "/v1/files", "headers": form, "body": body, "isBase64Encoded": True}
    refused = api.handler(event, CONTEXT)
    assert refused["statusCode"] == 413
    assert json.loads(refused["body"])["error"]["details"]["error_code"] == "file_needs_upload"
    chunks = iter([b"x" * size])
    stored = files.store_upload(deployed.ctx, DEFAULT_WORKSPACE, "big", "text/plain", chunks, None)
    event = {"httpMethod": "GET", "path": f"/v1/files/{stored['id']}/content", "headers": {"x-api-key": KEY}}
    answer = api.handler(event, CONTEXT)
    assert answer["statusCode"] == 302
    assert answer["headers"]["location"].startswith(deployed.environ["AWS_ENDPOINT_URL"])
