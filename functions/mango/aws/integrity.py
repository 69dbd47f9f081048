"""Refuses answers that are not complete.

botocore accepts an answer whose connection closed too early, and reads one that is no JSON as an empty one: an item
that is there would look missing. Its own check of DynamoDB's checksum only makes it repeat the request, which this
product does not let it do.
"""

from __future__ import annotations

from binascii import crc32
from typing import Any

from botocore.exceptions import ChecksumError, IncompleteReadError


def check_answers(client: Any) -> None:
    """Makes the client raise a `BotoCoreError` for an incomplete answer."""
    client.meta.events.register("after-call", _check_answer)


def _check_answer(http_response: Any, model: Any, **_: Any) -> None:
    if model.has_streaming_output:
        return  # read by the caller, and checked then
    content, headers = http_response.content, http_response.headers
    length = headers.get("Content-Length")
    if length is not None and int(length) != len(content):
        raise IncompleteReadError(actual_bytes=len(content), expected_bytes=int(length))
    expected = headers.get("x-amz-crc32")
    if expected is not None and int(expected) != (actual := crc32(content)):
        raise ChecksumError(checksum_type="crc32", expected_checksum=expected, actual_checksum=str(actual))
