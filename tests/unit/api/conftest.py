"""Fixtures of the API's tests."""

from __future__ import annotations

import pytest

from tests.unit.api.desk import Desk


@pytest.fixture
def desk() -> Desk:
    """A fresh deployment in memory."""
    return Desk()
