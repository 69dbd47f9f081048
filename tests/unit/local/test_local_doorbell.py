from __future__ import annotations

import threading
import time

from mango.memory import MemoryDoorbell
from mango_local.doorbell import LocalDoorbell


def test_wakes_everybody_who_waits_for_the_environment() -> None:
    outside = MemoryDoorbell()
    bell = LocalDoorbell(outside, recheck=10)
    heard: list[tuple[str, bool, float]] = []

    def wait(environment: str, seconds: float) -> None:
        began = time.monotonic()
        rang = bell.wait(environment, seconds)
        heard.append((environment, rang, time.monotonic() - began))

    waiters = [threading.Thread(target=wait, args=("env_1", 5.0)) for _ in range(3)]
    waiters.append(threading.Thread(target=wait, args=("env_2", 0.3)))
    for waiter in waiters:
        waiter.start()
    time.sleep(0.1)
    bell.ring("env_1", "work_1")
    for waiter in waiters:
        waiter.join(5)
    assert sorted((environment, rang) for environment, rang, _ in heard) == [("env_1", True)] * 3 + [("env_2", False)]
    assert all(seconds < 2 for environment, _, seconds in heard)
    assert list(outside.rings) == [("env_1", "work_1")]


def test_looks_again_before_the_time_is_over() -> None:
    bell = LocalDoorbell(None, recheck=0.05)
    began = time.monotonic()
    assert bell.wait("env_1", 5)
    assert time.monotonic() - began < 1
    assert not bell.wait("env_1", 0.01)


def test_keeps_nothing_of_environments_nobody_waits_for() -> None:
    bell = LocalDoorbell(None, recheck=0.01)
    for number in range(100):
        bell.ring(f"env_{number}", "work_1")
        bell.wait(f"env_{number}", 0.0)
    assert not bell._bells
