"""Blobs in memory."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator

from mango.ports import BlobInfo

_CHUNK = 1024 * 1024


class MemoryBlobs:
    """A `Blobs` in memory; a blob appears whole or not at all."""

    def __init__(self) -> None:
        self._blobs: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def put(self, key: str, data: bytes, content_type: str = "application/octet-stream") -> BlobInfo:
        """Stores the data."""
        return self.put_stream(key, iter((data,)), content_type)

    def put_stream(self, key: str, chunks: Iterator[bytes], content_type: str) -> BlobInfo:
        """Stores what the iterator yields; nothing is kept when it raises."""
        if not key or not content_type:
            raise ValueError("a blob needs a key and a content type")
        data = b"".join(chunks)
        with self._lock:
            self._blobs[key] = data
        return BlobInfo(len(data), hashlib.sha256(data).hexdigest())

    def get(self, key: str) -> bytes | None:
        """The whole content."""
        with self._lock:
            return self._blobs.get(key)

    def open(self, key: str) -> Iterator[bytes] | None:
        """The content in chunks of at most 1 MiB."""
        data = self.get(key)
        if data is None:
            return None
        return (data[start : start + _CHUNK] for start in range(0, len(data), _CHUNK))

    def delete(self, key: str) -> None:
        """Forgets the blob."""
        with self._lock:
            self._blobs.pop(key, None)

    def keys(self) -> list[str]:
        """All keys, in order, for tests."""
        with self._lock:
            return sorted(self._blobs)
