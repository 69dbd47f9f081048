"""Clock, ids, bell, orchestrator and blobs: the doubles, and the system's own clock and ids."""

from __future__ import annotations

import re
import threading
import time

from mango.domain.times import SECOND
from mango.memory import ManualClock, MemoryBlobs, MemoryDoorbell, RecordingOrchestrator, SeededIds, Start
from mango.ports import Blobs, Clock, Doorbell, Ids, Orchestrator
from mango.system import SystemClock, SystemIds

ID = re.compile(r"sesn_01[0-9A-Za-z]{22}")
SECRET = re.compile(r"[0-9A-Za-z_-]{43}")


def test_they_are_what_the_ports_ask_for() -> None:
    clocks: list[Clock] = [ManualClock(), SystemClock()]
    ids: list[Ids] = [SeededIds(), SystemIds()]
    bell: Doorbell = MemoryDoorbell()
    blobs: Blobs = MemoryBlobs()
    orchestrator: Orchestrator = RecordingOrchestrator()
    assert all((clocks, ids, bell, blobs, orchestrator))


def test_a_manual_clock_moves_when_it_is_told() -> None:
    clock = ManualClock(5 * SECOND)
    assert clock.now() == clock.now() == 5 * SECOND
    assert clock.advance(0.25) == clock.now() == 5_250_000
    clock.set(SECOND)
    assert clock.now() == SECOND


def test_the_system_clock_counts_microseconds() -> None:
    assert abs(SystemClock().now() - time.time() * SECOND) < 5 * SECOND


def test_seeded_ids_repeat_with_their_seed() -> None:
    one, same, other = SeededIds(7), SeededIds(7), SeededIds(8)
    ids = [one.new("sesn") for _ in range(100)]
    assert ids == [same.new("sesn") for _ in range(100)] == sorted(set(ids))
    assert other.new("sesn") not in ids
    assert all(ID.fullmatch(text) for text in ids)
    assert SECRET.fullmatch(one.secret())


def test_system_ids_are_in_order_of_time_even_if_it_stands_still() -> None:
    clock = ManualClock()
    ids = SystemIds(clock)
    made = [ids.new("sesn") for _ in range(50)]
    clock.set(clock.now() - SECOND)
    made += [ids.new("sesn") for _ in range(50)]
    clock.advance(3600)
    made += [ids.new("sesn") for _ in range(50)]
    assert made == sorted(set(made))
    assert all(ID.fullmatch(text) for text in made)
    later = ManualClock()
    later.advance(40 * 365 * 86400)
    assert SystemIds(later).new("sesn") > made[-1]


def test_system_ids_and_secrets_differ() -> None:
    clock = ManualClock()
    assert SystemIds(clock).new("a") != SystemIds(clock).new("a")
    secrets = {SystemIds().secret() for _ in range(100)}
    assert len(secrets) == 100
    assert all(SECRET.fullmatch(secret) for secret in secrets)


def test_a_ring_ends_one_wait_of_now_or_later() -> None:
    bell = MemoryDoorbell()
    assert bell.hears
    bell.ring("env_1", "work_1")
    assert bell.wait("env_1", 0) is True
    assert bell.wait("env_1", 0) is False
    assert bell.wait("env_2", 0.01) is False
    assert list(bell.rings) == [("env_1", "work_1")]


def test_a_ring_wakes_whoever_waits() -> None:
    bell = MemoryDoorbell()
    heard: list[bool] = []
    waiters = [threading.Thread(target=lambda: heard.append(bell.wait("env_1", 20))) for _ in range(2)]
    for waiter in waiters:
        waiter.start()
    bell.ring("env_2", "work_0")
    bell.ring("env_1", "work_1")
    bell.ring("env_1", "work_2")
    for waiter in waiters:
        waiter.join(20)
    assert heard == [True, True]


def test_an_orchestrator_that_remembers() -> None:
    orchestrator = RecordingOrchestrator()
    for wake in (1, 1, 2):
        orchestrator.start("sesn_1", "thrd_1", wake)
    orchestrator.start("sesn_1", "thrd_2", 1)
    first, second, other = Start("sesn_1", "thrd_1", 1), Start("sesn_1", "thrd_1", 2), Start("sesn_1", "thrd_2", 1)
    assert orchestrator.take() == [first, second, other]
    orchestrator.start("sesn_1", "thrd_1", 1)
    assert orchestrator.take() == []
    assert orchestrator.calls == [first, first, second, other, first]


def test_blobs_list_their_keys() -> None:
    blobs = MemoryBlobs()
    blobs.put("b", b"")
    blobs.put("a", b"")
    assert blobs.keys() == ["a", "b"]
