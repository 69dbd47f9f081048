"""Inputs of the file routes, and the rules of a file's name."""

from __future__ import annotations

import re
import unicodedata
from typing import Annotated
from urllib.parse import quote

from pydantic import Field

from mango.domain.errors import InvalidRequest
from mango.domain.wire.base import Many, ResourceId, refuse_surrogates
from mango.domain.wire.query import QueryModel, WholeNumber

MAX_FILE_BYTES = 524_288_000
"""500 MiB."""
MIN_EXPIRY, MAX_EXPIRY = 3_600, 7_776_000
"""An hour to ninety days, in seconds."""
MAX_IDS = 100
_FORBIDDEN = frozenset('<>:"|?*\\/')
_MIME = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,127}/[A-Za-z0-9!#$&^_.+-]{1,127}(;[ -~]{0,200})?", re.ASCII)
DEFAULT_MIME = "application/octet-stream"


class FileListQuery(QueryModel):
    """Pages by `page`, or in the older form by `after_id` and `before_id`; or one page of `ids`."""

    ids: Annotated[Many[ResourceId], Field(min_length=1, max_length=MAX_IDS)] | None = None
    limit: Annotated[WholeNumber, Field(ge=1, le=1000)] | None = None
    page: str | None = None
    scope_id: ResourceId | None = None
    after_id: ResourceId | None = None
    before_id: ResourceId | None = None


def check_filename(name: str) -> str:
    """The name as it is kept.

    Raises:
        InvalidRequest: it is empty, too long, a path, or holds characters that no file system takes.
    """
    refuse_surrogates(name)
    if not 1 <= len(name) <= 255:
        raise InvalidRequest(f"must have a filename of 1 to 255 characters, has {len(name)}", path="file")
    bad = next((c for c in name if c in _FORBIDDEN or unicodedata.category(c) in ("Cc", "Zl", "Zp")), None)
    if bad is not None:
        raise InvalidRequest(f"filename must not hold the character {bad!r}", path="file")
    if name in (".", ".."):
        raise InvalidRequest(f"filename must not be {name!r}", path="file")
    return name


def check_mime_type(text: str | None) -> str:
    """The media type, or the default where none is given; one that could not go into a header is refused."""
    kind = (text or "").strip()
    if not kind:
        return DEFAULT_MIME
    if not _MIME.fullmatch(kind):
        raise InvalidRequest("content type must look like 'text/plain'", path="file")
    return kind


def check_expiry(text: str | None) -> int | None:
    """Seconds of the multipart field `expires_in_seconds`."""
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 9 and MIN_EXPIRY <= int(text) <= MAX_EXPIRY):
        raise InvalidRequest(f"must be a whole number from {MIN_EXPIRY} to {MAX_EXPIRY}", path="expires_in_seconds")
    return int(text)


def disposition(filename: str) -> str:
    """`attachment` with the name twice: an ASCII stand-in, and the real one as RFC 6266 has it."""
    plain = "".join(c if c.isascii() and c.isprintable() and c not in '"\\' else "_" for c in filename)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(filename, safe='')}"
