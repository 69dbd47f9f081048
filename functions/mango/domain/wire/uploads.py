"""Inputs of the upload routes: files that arrive in parts."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from mango.domain.wire.base import Many, Text, WireModel
from mango.domain.wire.errors import fault
from mango.domain.wire.files import MAX_EXPIRY, MAX_FILE_BYTES, MIN_EXPIRY

MAX_PARTS = 10_000
"""S3: parts of one upload."""
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_TAG = re.compile(r'"?[!#-~]{1,128}"?', re.ASCII)


def _sha256(text: str) -> str:
    if not _SHA256.fullmatch(text):
        raise fault("must be 64 hexadecimal digits, in lower case")
    return text


def _tag(text: str) -> str:
    if not _TAG.fullmatch(text):
        raise fault("must be an entity tag, as the answer to the part has it")
    return text


def _parts(value: object) -> object:
    if isinstance(value, list) and len(value) > MAX_PARTS:
        raise fault(f"must have at most {MAX_PARTS} entries, has {len(value)}")
    return value


class UploadCreate(WireModel):
    """What is going to arrive."""

    filename: Text
    size_bytes: Annotated[int, Field(ge=1, le=MAX_FILE_BYTES)]
    sha256: Annotated[str, AfterValidator(_sha256)]
    mime_type: Text | None = None
    expires_in_seconds: Annotated[int, Field(ge=MIN_EXPIRY, le=MAX_EXPIRY)] | None = None


class UploadedPart(WireModel):
    """One part, and what the answer to its PUT said in `etag`."""

    part_number: Annotated[int, Field(ge=1, le=MAX_PARTS)]
    etag: Annotated[str, AfterValidator(_tag)]


class UploadComplete(WireModel):
    """Every part, in any order."""

    parts: Annotated[Many[UploadedPart], Field(min_length=1), BeforeValidator(_parts)]
