"""Echoes the user's latest words; never calls a tool."""

from __future__ import annotations

from mango.model.answers import say
from mango.model.transcript import last_user_text
from mango.ports import ModelAnswer, ModelRequest


def respond(request: ModelRequest) -> ModelAnswer:
    """`echo: <last user text>`."""
    return say(f"echo: {last_user_text(request)}")
