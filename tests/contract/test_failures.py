"""What each answer of DynamoDB means, also those that no emulator gives: throttling, conflicts, mixed reasons."""

from __future__ import annotations

from typing import Any, cast

import pytest
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    NoCredentialsError,
    ReadTimeoutError,
    SSLError,
)

from mango.aws.serial import encode_item
from mango.aws.store import DynamoStore
from mango.domain.transaction import (
    Ambiguous,
    Key,
    Put,
    Refused,
    StoreUnavailable,
    TooLarge,
    Transaction,
)

URL = "http://localhost"
KEYS = [Key("p", f"i{n}") for n in range(3)]
ONE = Transaction((Put(KEYS[0], {"n": 0}),))
TWO = Transaction((Put(KEYS[0], {"n": 0}), Put(KEYS[1], {"n": 1})))


def answered(code: str, status: int = 400, message: str = "", reasons: list[str] | None = None) -> ClientError:
    response: Any = {
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    if reasons is not None:
        response["CancellationReasons"] = [{"Code": reason, "Message": message} for reason in reasons]
    return ClientError(response, "TransactWriteItems")


def cancelled(*reasons: str, message: str = "") -> ClientError:
    return answered("TransactionCanceledException", message=message, reasons=list(reasons))


class Scripted:
    """A client that gives prepared answers, whatever it is asked; the last one again and again."""

    def __init__(self, *outcomes: Any) -> None:
        self.outcomes = list(outcomes)
        self.calls: list[dict[str, Any]] = []

    def __getattr__(self, operation: str) -> Any:
        def call(**parameters: Any) -> Any:
            self.calls.append(parameters)
            outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        return call


def store_on(client: Scripted, pauses: list[float] | None = None) -> DynamoStore:
    kept: list[float] = [] if pauses is None else pauses
    return DynamoStore(cast(Any, client), "table", attempts=5, sleep=kept.append)


ONCE: list[tuple[ClientError | BotoCoreError, type[Exception]]] = [
    (cancelled("None", "ConditionalCheckFailed"), Refused),
    (
        cancelled("None", "ValidationError", message="Item size to update has exceeded the maximum allowed size"),
        TooLarge,
    ),
    (cancelled("None", "ValidationError", message="An operand has an incorrect data type"), ValueError),
    (cancelled("None", "TypeError"), StoreUnavailable),
    (answered("ConditionalCheckFailedException"), Refused),
    (answered("ValidationException", message="Item size has exceeded the maximum allowed size"), TooLarge),
    (answered("ValidationException", message="The expression has redundant parentheses"), ValueError),
    (answered("InternalServerError", 500), Ambiguous),
    (answered("ServiceUnavailable", 503), Ambiguous),
    (answered("503", 503), Ambiguous),
    (answered("TransactionInProgressException"), Ambiguous),
    (answered("ResourceNotFoundException"), StoreUnavailable),
    (answered("AccessDeniedException"), StoreUnavailable),
    (answered("ExpiredTokenException"), StoreUnavailable),
    (ReadTimeoutError(endpoint_url=URL), Ambiguous),
    (ConnectionClosedError(endpoint_url=URL), Ambiguous),
    (SSLError(endpoint_url=URL, error=OSError("x")), Ambiguous),
    (HTTPClientError(error=OSError("reset")), Ambiguous),
    (EndpointConnectionError(endpoint_url=URL), StoreUnavailable),
    (ConnectTimeoutError(endpoint_url=URL), StoreUnavailable),
    (NoCredentialsError(), StoreUnavailable),
]


@pytest.mark.parametrize("transaction", [ONE, TWO], ids=["one", "two"])
@pytest.mark.parametrize(("answer", "meaning"), ONCE)
def test_these_are_final(answer: Exception, meaning: type[Exception], transaction: Transaction) -> None:
    client = Scripted(answer)
    with pytest.raises(meaning) as caught:
        store_on(client).commit(transaction)
    assert type(caught.value) is meaning
    assert caught.value.__cause__ is answer
    assert len(client.calls) == 1


BUSY = [
    cancelled("TransactionConflict", "None"),
    cancelled("ThrottlingError", "TransactionConflict"),
    cancelled("None", "ProvisionedThroughputExceeded"),
    answered("TransactionConflictException"),
    answered("ThrottlingException"),
    answered("ProvisionedThroughputExceededException"),
    answered("RequestLimitExceeded"),
]


@pytest.mark.parametrize("answer", BUSY)
def test_busy_is_tried_again_with_growing_pauses(answer: Exception) -> None:
    pauses: list[float] = []
    client = Scripted(answer, answer, {})
    store_on(client, pauses).commit(TWO)
    assert len(client.calls) == 3
    assert client.calls[0] == client.calls[2]
    assert len(pauses) == 2
    assert all(0 <= pause <= 0.8 for pause in pauses)


@pytest.mark.parametrize("answer", BUSY)
def test_busy_for_too_long_is_unavailable(answer: Exception) -> None:
    client = Scripted(answer)
    with pytest.raises(StoreUnavailable):
        store_on(client).commit(TWO)
    assert len(client.calls) == 5


def test_busy_then_lost_is_ambiguous() -> None:
    with pytest.raises(Ambiguous):
        store_on(Scripted(BUSY[0], ReadTimeoutError(endpoint_url=URL))).commit(TWO)


def test_a_failed_condition_wins_over_every_other_reason() -> None:
    answer = cancelled("TransactionConflict", "ConditionalCheckFailed", "ValidationError", "ConditionalCheckFailed")
    with pytest.raises(Refused) as caught:
        store_on(Scripted(answer)).commit(TWO)
    assert caught.value.indexes == (1, 3)


@pytest.mark.parametrize("answer", [*BUSY[3:], answered("500", 500), ReadTimeoutError(endpoint_url=URL)])
def test_reads_are_tried_again(answer: Exception) -> None:
    item = encode_item(KEYS[0], {"n": 0})
    assert store_on(Scripted(answer, answer, {"Item": item})).get(KEYS[0]) == {"n": 0}
    with pytest.raises(StoreUnavailable):
        store_on(Scripted(answer)).get(KEYS[0])


def test_reads_that_cannot_succeed_are_not() -> None:
    for answer in (answered("AccessDeniedException"), answered("ResourceNotFoundException")):
        client = Scripted(answer)
        with pytest.raises(StoreUnavailable):
            store_on(client).query("p")
        assert len(client.calls) == 1


def batch(found: list[int], unprocessed: list[int]) -> dict[str, Any]:
    items = [encode_item(KEYS[n], {"n": n}) for n in found]
    left = {"table": {"Keys": [{"pk": {"S": "p"}, "sk": {"S": f"i{n}"}} for n in unprocessed]}} if unprocessed else {}
    return {"Responses": {"table": items}, "UnprocessedKeys": left}


def test_unprocessed_keys_are_asked_for_again() -> None:
    client = Scripted(batch([2], [0, 1]), batch([], [0, 1]), batch([0], [1]), batch([], []))
    assert store_on(client).get_many(KEYS) == [{"n": 0}, None, {"n": 2}]
    assert [len(call["RequestItems"]["table"]["Keys"]) for call in client.calls] == [3, 2, 2, 1]


def test_keys_that_stay_unprocessed_are_unavailable() -> None:
    with pytest.raises(StoreUnavailable):
        store_on(Scripted(batch([], [0, 1, 2]))).get_many(KEYS)


def test_a_page_that_is_empty_before_the_end_is_skipped() -> None:
    stopped = {"pk": {"S": "p"}, "sk": {"S": "i0"}}
    client = Scripted({"Items": [], "LastEvaluatedKey": stopped}, {"Items": [encode_item(KEYS[1], {"n": 1})]})
    assert store_on(client).query("p").items == [(KEYS[1], {"n": 1})]
    assert client.calls[1]["ExclusiveStartKey"] == stopped
