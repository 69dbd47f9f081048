"""Runs `echo step N` with bash again and again, one call an answer, then says `done`. For crash tests and benchmarks.

The latest user text that holds a number says how often (`run 25`); ten times when none does.
"""

from __future__ import annotations

import re

from mango.model.answers import say, use
from mango.model.transcript import calls, offers, user_texts
from mango.ports import ModelAnswer, ModelRequest

DEFAULT_COUNT = 10


def wanted(request: ModelRequest, default: int) -> tuple[int, int]:
    """How many calls the user asked for, and the index of the message that did."""
    texts = user_texts(request)
    for index, text in reversed(texts):
        if number := re.search(r"\d+", text):
            return int(number.group()), index
    return default, texts[-1][0] if texts else 0


def respond(request: ModelRequest) -> ModelAnswer:
    """The next step, or `done`."""
    if not offers(request, "bash"):
        return say("bash is not offered to me")
    count, start = wanted(request, DEFAULT_COUNT)
    step = sum(call.result is not None for call in calls(request.messages[start:])) + 1
    if step > count:
        return say("done")
    return use(request, [("bash", {"command": f"echo step {step}"})])
