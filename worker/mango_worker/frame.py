"""The one-shot message that carries a work credential over standard input: 4-byte big-endian length, payload."""

import os
import select
import struct
import time

from mango_worker.errors import CredentialError

MAX_PAYLOAD = 16 * 1024
_HEADER = struct.Struct(">I")


def encode_frame(payload: bytes) -> bytes:
    """Frame `payload` (1 byte to 16 KiB)."""
    if not 0 < len(payload) <= MAX_PAYLOAD:
        raise CredentialError(f"the work credential must be 1 to {MAX_PAYLOAD} bytes long")
    return _HEADER.pack(len(payload)) + payload


def read_frame(descriptor: int, timeout: float = 30.0) -> bytes:
    """Read one frame from a file descriptor within `timeout` seconds.

    Raises CredentialError when the frame is missing, cut short, too long or late.
    """
    deadline = time.monotonic() + timeout
    (length,) = _HEADER.unpack(_read_exactly(descriptor, _HEADER.size, deadline))
    if not 0 < length <= MAX_PAYLOAD:
        raise CredentialError(f"the work credential frame announces {length} bytes")
    return _read_exactly(descriptor, length, deadline)


def _read_exactly(descriptor: int, size: int, deadline: float) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise CredentialError("no work credential arrived on standard input in time")
        part = os.read(descriptor, size - len(parts))
        if not part:
            raise CredentialError("standard input ended before the work credential was complete")
        parts += part
    return bytes(parts)
