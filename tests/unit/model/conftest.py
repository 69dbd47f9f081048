"""Fixtures of the model clients' tests."""

from __future__ import annotations

from tests.support.messages_server import messages_server

__all__ = ["messages_server"]
