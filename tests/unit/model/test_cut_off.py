"""Answers that reach their token limit, and the limit itself."""

from __future__ import annotations

from typing import Any

import pytest

from mango.model.assembly import Assembly, CutOff, MalformedStream
from mango.model.factory import ModelSettings, ModelSettingsError

Json = dict[str, Any]
USE = {"type": "tool_use", "id": "toolu_1", "name": "write", "input": {}}


def play(stop_reason: str, partial: str, *, closed: bool) -> Assembly:
    assembly = Assembly()
    assembly.take({"type": "message_start", "message": {"usage": {"input_tokens": 3}}})
    assembly.take({"type": "content_block_start", "index": 0, "content_block": USE})
    delta = {"type": "input_json_delta", "partial_json": partial}
    assembly.take({"type": "content_block_delta", "index": 0, "delta": delta})
    if closed:
        assembly.take({"type": "content_block_stop", "index": 0})
    assembly.take({"type": "message_delta", "delta": {"stop_reason": stop_reason}})
    assembly.take({"type": "message_stop"})
    return assembly


@pytest.mark.parametrize("closed", [True, False])
def test_a_call_that_the_limit_cut_off_is_told_from_a_broken_stream(closed: bool) -> None:
    with pytest.raises(CutOff):
        play("max_tokens", '{"content": "abc', closed=closed)
    with pytest.raises(MalformedStream):
        play("tool_use", '{"content": "abc', closed=closed)


def test_a_whole_call_at_the_limit_is_an_answer() -> None:
    answer = play("max_tokens", '{"content": "abc"}', closed=True).answer
    assert answer is not None
    assert answer.content[0]["input"] == {"content": "abc"}


def test_the_limit_is_a_setting() -> None:
    assert ModelSettings.from_environment({"MANGO_MODEL_MAX_TOKENS": "32000"}).max_tokens == 32000
    assert ModelSettings.from_environment({}).max_tokens == 16_384


@pytest.mark.parametrize("value", ["0", "-1", "many", "1e4", "99999999", "٣"])
def test_a_limit_that_is_none_is_refused(value: str) -> None:
    with pytest.raises(ModelSettingsError, match="MANGO_MODEL_MAX_TOKENS"):
        ModelSettings.from_environment({"MANGO_MODEL_MAX_TOKENS": value})
