"""The `filename*` of a form's part: a name beyond ASCII as RFC 5987 spells it, `UTF-8''na%C3%AFve.txt`."""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from mango.domain.errors import InvalidRequest

# A quoted value is one piece, so that what it holds is not taken for further parameters.
_PARAMETER = re.compile(rb';\s*+([^=;"\s]++)\s*+=\s*+("(?:[^"\\]++|\\.)*+"|[^;]*+)', re.DOTALL)
_EXTENDED = re.compile(rb"(utf-8|iso-8859-1)'[^']*'((?:%[0-9a-f]{2}|[^%'\s\"])+)", re.IGNORECASE)


def extended_filename(header: bytes) -> str | None:
    """The name in a `Content-Disposition`, or None where it has no `filename*`.

    Forms should not have it (RFC 7578, 4.2), but some clients write it, often beside an ASCII stand-in.

    Raises:
        InvalidRequest: it is malformed. Taking the stand-in then would store another name than was meant.
    """
    for name, value in _PARAMETER.findall(header):
        if name.lower() == b"filename*":
            return _decoded(value.strip())
    return None


def _decoded(value: bytes) -> str:
    match = _EXTENDED.fullmatch(value)
    if match is None:
        raise InvalidRequest("filename* must look like UTF-8''name, percent-encoded", path="file")
    try:
        return unquote_to_bytes(match[2]).decode(match[1].decode())
    except UnicodeDecodeError:
        raise InvalidRequest("filename* is not valid UTF-8", path="file") from None
