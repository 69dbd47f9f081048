from __future__ import annotations

import logging
import threading

import pytest

from mango.domain.transaction import StoreUnavailable
from mango_local.sweeper import Sweeper


def test_goes_on_after_failures_and_tells_them_once(caplog: pytest.LogCaptureFixture) -> None:
    failures: list[Exception] = [StoreUnavailable("gone"), RuntimeError("bug"), StoreUnavailable("gone")]
    done = threading.Event()
    passes = 0

    def sweep() -> None:
        nonlocal passes
        passes += 1
        if failures:
            raise failures.pop()
        if passes >= 6:
            done.set()

    sweeper = Sweeper(sweep, period=0.01)
    with caplog.at_level(logging.INFO, "mango.sweeper"):
        sweeper.start()
        assert done.wait(5)
        sweeper.stop()
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 2
    assert messages[0].startswith("a sweep failed")
    assert messages[1] == "sweeps work again after 3 failures"


def test_leaves_a_pass_behind_that_takes_too_long() -> None:
    go = threading.Event()
    sweeper = Sweeper(lambda: go.wait(5), period=0.01)
    sweeper.start()
    sweeper.stop(0.1)
    go.set()
