"""Tracing, in a process of its own: a UDP socket plays X-Ray's daemon."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from typing import Any

from tests.unit.handlers.functions import Deployed

Json = dict[str, Any]

TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"
CALL = """
import json, os, sys
from mango.handlers.api import handler
event = {"httpMethod": "GET", "path": sys.argv[1], "headers": {"x-api-key": "sk-mango-local-development"}}
print(handler(event, None)["statusCode"])
"""


def traced(deployed: Deployed, **changes: str) -> tuple[str, list[Json]]:
    """What a call printed, and the segments that it sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as daemon:
        daemon.bind(("127.0.0.1", 0))
        daemon.setblocking(False)
        environment = os.environ | {
            "AWS_XRAY_DAEMON_ADDRESS": f"127.0.0.1:{daemon.getsockname()[1]}",
            "LAMBDA_TASK_ROOT": "/var/task",
            "_X_AMZN_TRACE_ID": TRACE,
        }
        done = subprocess.run(
            [sys.executable, "-c", CALL, "/v1/sessions/sesn_none"],
            env=environment | changes,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        segments: list[Json] = []
        while True:
            try:
                segments.append(json.loads(daemon.recv(65536).split(b"\n", 1)[1]))
            except BlockingIOError:
                return done.stdout, segments


def test_calls_to_aws_are_parts_of_the_invocation(deployed: Deployed) -> None:
    printed, segments = traced(deployed, MANGO_TRACING="true", POWERTOOLS_TRACE_DISABLED="false")
    assert printed.split() == ["404"]
    (own,) = [one for one in segments if one["name"] == "## api"]
    assert own["annotations"] == {"session_id": "sesn_none"}
    inner = [one["name"] for one in [*own.get("subsegments", []), *segments]]
    assert "dynamodb" in inner


def test_without_it_nothing_is_sent(deployed: Deployed) -> None:
    printed, segments = traced(deployed)
    assert (printed.split(), segments) == (["404"], [])
