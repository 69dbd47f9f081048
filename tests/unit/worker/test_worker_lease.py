"""Heartbeats: what is sent, and when the lease is over."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from mango_worker.errors import ApiRefused, ApiUnavailable
from mango_worker.item.lease import Lease, LeaseLapsed, LeaseLost, StopRequested, acquire, keep


class Script:
    """Answers heartbeats in order, on a clock of its own; records what was expected."""

    def __init__(self, *answers: Any, now: float = 100.0) -> None:
        self.answers = list(answers)
        self.sent: list[str] = []
        self.now = now
        self.cost = 0.0

    def post(self, path: str, *, params: dict[str, Any], timeout: float) -> Any:
        assert path == "/work/heartbeat" and timeout > 0
        self.sent.append(params["expected_last_heartbeat"])
        self.now += self.cost
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def lease(self) -> Lease:
        return Lease(self, "/work", lambda: self.now)


def beat(number: int, ttl: float = 30, **more: Any) -> dict[str, Any]:
    return {"last_heartbeat": f"t{number}", "ttl_seconds": ttl, "lease_extended": True, "state": "active", **more}


AWAY = ApiUnavailable("away")


def test_each_heartbeat_names_the_one_before() -> None:
    script = Script(beat(1), beat(2), beat(3))
    lease = script.lease()
    for _ in range(3):
        lease.beat()
    assert script.sent == ["NO_HEARTBEAT", "t1", "t2"]


def test_an_ambiguous_heartbeat_is_repeated_with_the_same_value() -> None:
    script = Script(AWAY, AWAY, beat(1), AWAY, beat(2))
    lease = script.lease()
    acquire(lease, script.sleep)
    with pytest.raises(ApiUnavailable):
        lease.beat()
    lease.beat()
    assert script.sent == ["NO_HEARTBEAT"] * 3 + ["t1"] * 2


@pytest.mark.parametrize("status", [401, 403, 404, 410, 412])
def test_these_answers_mean_that_the_lease_is_lost(status: int) -> None:
    with pytest.raises(LeaseLost):
        Script(ApiRefused(status, "no")).lease().beat()


def test_another_refusal_is_not_taken_for_a_lost_lease() -> None:
    with pytest.raises(ApiRefused):
        Script(ApiRefused(400, "no")).lease().beat()


@pytest.mark.parametrize("more", [{"state": "stopping"}, {"state": "stopped"}, {"lease_extended": False}])
def test_being_told_to_stop(more: dict[str, Any]) -> None:
    with pytest.raises(StopRequested):
        Script(beat(1, **more)).lease().beat()


@pytest.mark.parametrize(("ttl", "interval"), [(30, 15), (300, 30), (1, 0.5), (0.1, 0.1)])
def test_the_interval_follows_the_ttl(ttl: float, interval: float) -> None:
    lease = Script(beat(1, ttl)).lease()
    lease.beat()
    assert lease.interval == interval


def test_the_lease_counts_from_when_the_heartbeat_was_sent() -> None:
    script = Script(beat(1, ttl=10))
    script.cost = 3.0
    lease = script.lease()
    lease.beat()
    assert lease.remaining == 7.0


def test_without_success_within_the_ttl_the_lease_has_lapsed() -> None:
    script = Script(beat(1, ttl=10), AWAY, AWAY)
    lease = script.lease()
    lease.beat()
    script.now += 9
    with pytest.raises(ApiUnavailable):
        lease.beat()
    script.now += 1
    with pytest.raises(LeaseLapsed):
        lease.beat()


def test_the_first_heartbeat_is_given_up_after_the_assumed_ttl() -> None:
    script = Script(*[AWAY] * 100)
    with pytest.raises(ApiUnavailable):
        acquire(script.lease(), script.sleep)
    assert 125 <= script.now <= 130


def test_an_answer_without_a_heartbeat_is_no_answer() -> None:
    for answer in (None, {}, {"last_heartbeat": 5}):
        with pytest.raises(ApiUnavailable):
            Script(answer).lease().beat()


def kept(*answers: Any) -> tuple[list[Exception], list[str]]:
    script = Script(*answers)
    ends: list[Exception] = []
    lease = script.lease()
    keep(lease, _Impatient(script.sleep), ends.append)
    return ends, script.sent


class _Impatient(threading.Event):
    """An event whose waiting only moves a clock."""

    def __init__(self, sleep: Callable[[float], None]) -> None:
        super().__init__()
        self._sleep = sleep

    def wait(self, timeout: float | None = None) -> bool:
        self._sleep(timeout or 0.0)
        return False


def test_keeping_it_through_an_outage_that_is_shorter_than_the_ttl() -> None:
    ends, sent = kept(beat(1), *[AWAY] * 14, beat(2), ApiRefused(412, "taken"))
    assert [type(end) for end in ends] == [LeaseLost]
    assert sent == ["NO_HEARTBEAT", *["t1"] * 15, "t2"]


def test_an_outage_longer_than_the_ttl_ends_it() -> None:
    ends, _ = kept(beat(1), *[AWAY] * 100)
    assert [type(end) for end in ends] == [LeaseLapsed]
