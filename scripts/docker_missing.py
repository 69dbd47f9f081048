"""A pytest plugin of scripts/test: where no Docker engine answers, tests that need one are skipped, saying why."""

from __future__ import annotations

import os

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = os.environ.get("MANGO_DOCKER_MISSING")
    if not reason:
        return
    for item in items:
        if item.get_closest_marker("docker") or "tests/docker/" in item.path.as_posix():
            item.add_marker(pytest.mark.skip(reason=reason))
