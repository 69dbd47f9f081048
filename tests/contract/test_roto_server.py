"""The helper that other tests start a store with."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.roto import HOST, RotoServer


def answers(endpoint: str) -> bool:
    try:
        socket.create_connection((HOST, int(endpoint.rpartition(":")[2])), 0.5).close()
    except OSError:
        return False
    return True


def test_it_answers_between_start_and_stop(data_dir: Path) -> None:
    server = RotoServer(data_dir)
    with server:
        endpoint = server.endpoint
        assert answers(endpoint)
        server.kill()
        assert not answers(endpoint)
        assert server.start().endpoint == endpoint
        assert answers(endpoint)
    assert not answers(endpoint)
    server.stop()


def test_it_goes_with_a_test_process_that_is_killed(data_dir: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from tests.support.roto import RotoServer\n"
        "print(RotoServer(Path(sys.argv[1])).start().endpoint, flush=True); time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", script, str(data_dir)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    with child.stdout:
        endpoint = child.stdout.readline().strip()
    assert answers(endpoint)
    child.kill()
    child.wait()
    deadline = time.monotonic() + 20
    while answers(endpoint):
        if time.monotonic() > deadline:
            pytest.fail("the server outlived its test process")
        time.sleep(0.02)
