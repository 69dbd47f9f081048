"""The worker at the doorbell: rings may be lost, doubled, late or nonsense, and the queue may fail in every way."""

import threading
import time
from collections import deque
from collections.abc import Iterator

import pytest

from mango_worker.api import Api
from mango_worker.errors import ApiUnavailable, QueueUnavailable, WorkerError
from mango_worker.supervisor import rung_claims
from mango_worker.supervisor.loop import Supervisor
from mango_worker.supervisor.options import checked_queue
from mango_worker.supervisor.rung_claims import Ring, RungClaims
from tests.unit.worker.stub_api import ENVIRONMENT, KEY, StubApi
from tests.unit.worker.test_worker_supervisor import Pretended


class FakeBell:
    """Rings in order; an error in between is raised. Silence takes no time."""

    def __init__(self) -> None:
        self.heard: deque[Ring | WorkerError] = deque()
        self.deleted: list[str] = []
        self.undeletable: WorkerError | None = None
        self.waits = 0

    def ring(self, *work_ids: str) -> None:
        self.heard.extend(Ring(work_id, f"receipt of {work_id}") for work_id in work_ids)

    def wait(self, stop: threading.Event) -> Ring | None:
        self.waits += 1
        if not self.heard:
            stop.wait(0.01)
            return None
        heard = self.heard.popleft()
        if isinstance(heard, WorkerError):
            raise heard
        return heard

    def delete(self, ring: Ring) -> None:
        if self.undeletable:
            raise self.undeletable
        self.deleted.append(ring.receipt.removeprefix("receipt of "))


class At:
    """Claims at a bell of one's own."""

    def __init__(self, stub: StubApi) -> None:
        self.api = Api(stub.url, KEY, "worker-1")
        self.bell = FakeBell()
        self.stop = threading.Event()
        self.said: list[str] = []
        self.claims = RungClaims(self.api, ENVIRONMENT, self.bell, self.stop, self.said.append)

    def next(self) -> str | None:
        item = self.claims.poll(block=True)
        return item.id if item else None


@pytest.fixture
def at(stub: StubApi) -> Iterator[At]:
    made = At(stub)
    yield made
    made.api.close()


def asked(stub: StubApi) -> list[str | None]:
    """The work that each poll named."""
    return [one.query.get("work_id", [None])[0] for one in stub.seen("GET", "/poll$")]


def test_a_ring_names_what_is_claimed_and_is_deleted(stub: StubApi, at: At) -> None:
    assert at.next() is None
    stub.add_work("work_1")
    stub.add_work("work_2")
    at.bell.ring("work_2")
    assert at.next() == "work_2"
    assert at.bell.deleted == ["work_2"]
    assert asked(stub) == [None, "work_2"]


def test_what_was_there_before_is_found_without_a_ring(stub: StubApi, at: At) -> None:
    stub.add_work("work_1")
    stub.add_work("work_2")
    assert [at.next(), at.next()] == ["work_1", "work_2"]
    assert at.bell.waits == 0


def test_a_lost_ring_costs_time_only(stub: StubApi, at: At, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rung_claims, "ASK_EVERY", 0.2)
    assert at.next() is None
    stub.add_work("work_1")
    deadline = time.monotonic() + 20
    while (found := at.next()) is None and time.monotonic() < deadline:
        pass
    assert found == "work_1"


def test_doubled_late_and_meaningless_rings_are_deleted_and_passed_over(stub: StubApi, at: At) -> None:
    assert at.next() is None
    stub.add_work("work_1")
    at.bell.ring("work_1", "work_1", "", "../../x", "work_gone", "work_2")
    assert at.next() == "work_1"
    stub.add_work("work_2")
    assert at.next() == "work_2"
    assert at.bell.deleted == ["work_1", "work_1", "", "../../x", "work_gone", "work_2"]
    assert asked(stub) == [None, "work_1", "work_1", "work_gone", "work_2"]


def test_a_ring_stays_while_the_api_does_not_answer(stub: StubApi, at: At) -> None:
    assert at.next() is None
    stub.add_work("work_1")
    stub.fail("GET", "/poll$", 503)
    at.bell.ring("work_1")
    with pytest.raises(ApiUnavailable):
        at.next()
    assert at.bell.deleted == []
    at.bell.ring("work_1")
    assert at.next() == "work_1"


def test_an_unreachable_queue_is_told_once_and_replaced_by_polling(stub: StubApi, at: At) -> None:
    at.bell.heard.extend([QueueUnavailable("refused"), QueueUnavailable("refused")])
    assert at.next() is None
    stub.add_work("work_1")
    assert at.next() == "work_1"
    assert at.said == ["cannot reach the queue (refused); polling over HTTP until it answers"]
    at.claims._listen_at = 0.0
    assert at.next() is None
    at.claims._listen_at = 0.0
    assert at.next() is None
    assert at.said[1:] == ["the queue answers again"]
    stub.add_work("work_2")
    assert at.next() == "work_2", "what rang meanwhile is asked for"


def test_a_ring_that_cannot_be_deleted_does_not_cost_the_item(stub: StubApi, at: At) -> None:
    assert at.next() is None
    stub.add_work("work_1")
    stub.add_work("work_2")
    at.bell.undeletable = WorkerError("AWS refused")
    at.bell.ring("work_1", "work_1", "work_2")
    assert [at.next(), at.next()] == ["work_1", "work_2"]
    assert at.said == ["rings cannot be deleted and will come again: AWS refused"]
    at.bell.undeletable = QueueUnavailable("later")
    at.bell.ring("work_1")
    assert at.next() is None
    assert len(at.said) == 1


def test_draining_needs_no_bell(stub: StubApi, at: At) -> None:
    stub.add_work("work_1")
    at.bell.ring("work_1")
    assert at.claims.poll(block=False) is not None
    assert at.claims.poll(block=False) is None
    assert at.bell.waits == 0


def test_a_queue_that_refuses_ends_the_supervisor(stub: StubApi, at: At) -> None:
    at.bell.heard.append(WorkerError("there is no queue"))
    with pytest.raises(WorkerError, match="there is no queue"):
        Supervisor(at.claims, Pretended(), at.stop, at.said.append, stub.url).serve()


def test_a_refused_key_ends_the_supervisor_and_leaves_the_ring_to_others(stub: StubApi, at: At) -> None:
    assert at.next() is None
    stub.fail("GET", "/poll$", 401)
    at.bell.ring("work_1")
    with pytest.raises(WorkerError, match="refused the key"):
        Supervisor(at.claims, Pretended(), at.stop, at.said.append, stub.url).serve()
    assert at.bell.deleted == []


URL = "https://sqs.eu-west-1.amazonaws.com/123456789012/mango-env-env_1"


def test_the_queue_must_be_the_environments() -> None:
    assert checked_queue(f" {URL} ", "env_1") == URL
    assert checked_queue("http://localhost:4566/000000000000/operator", "env_1").endswith("operator")
    for wrong in ("mango-env-env_1", "ftp://host/mango-env-env_1", "https://host/", "https://host/a b"):
        with pytest.raises(WorkerError, match="is not the URL of a queue"):
            checked_queue(wrong, "env_1")
    with pytest.raises(WorkerError, match="is not the queue of env_2"):
        checked_queue(URL, "env_2")
