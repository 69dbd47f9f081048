"""Blobs in memory."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

from mango.ports import BlobInfo, PartsRefused

_CHUNK = 1024 * 1024
MIN_PART = 5 * 1024 * 1024
"""S3 refuses smaller parts, all but the last."""


@dataclass(slots=True)
class _Upload:
    key: str
    parts: dict[int, bytes] = field(default_factory=dict)


class MemoryBlobs:
    """A `Blobs` in memory; a blob appears whole or not at all. URLs, if it `presigns`, lead nowhere."""

    def __init__(self, *, presigns: bool = False) -> None:
        self._blobs: dict[str, bytes] = {}
        self._uploads: dict[str, _Upload] = {}
        self._begun = 0
        self._presigns = presigns
        self._lock = threading.RLock()

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

    def size(self, key: str) -> int | None:
        """Bytes of a blob."""
        data = self.get(key)
        return None if data is None else len(data)

    def presign_get(self, key: str, seconds: int, content_type: str, disposition: str) -> str | None:
        """A URL that names everything it was made of."""
        return self._url(key, expires=seconds, type=content_type, disposition=disposition)

    def presign_part(self, key: str, handle: str, number: int, size: int, seconds: int) -> str | None:
        """A URL that names everything it was made of."""
        return self._url(key, expires=seconds, upload=handle, part=number, size=size)

    def _url(self, key: str, **given: str | int) -> str | None:
        return f"https://blobs.test/{quote(key)}?{urlencode(given)}" if self._presigns else None

    def begin_parts(self, key: str, content_type: str, sha256: str) -> str:
        """Handles are counted."""
        with self._lock:
            self._begun += 1
            handle = f"upload-{self._begun}"
            self._uploads[handle] = _Upload(key)
            return handle

    def put_part(self, key: str, handle: str, number: int, data: bytes) -> str:
        """The entity tag is the MD5, as on S3."""
        with self._lock:
            self._upload(key, handle).parts[number] = data
        return _tag(data)

    def complete_parts(self, key: str, handle: str, tags: Sequence[str]) -> None:
        """See `mango.ports.Blobs.complete_parts`."""
        with self._lock:
            if handle not in self._uploads and key in self._blobs:
                return
            have = self._upload(key, handle).parts
            parts = [have.get(number) for number in range(1, len(tags) + 1)]
            chosen = [part for part in parts if part is not None]
            if not tags or [_tag(part).strip('"') for part in chosen] != [tag.strip('"') for tag in tags]:
                raise PartsRefused("parts are missing, or are not those of these tags")
            if any(len(part) < MIN_PART for part in chosen[:-1]):
                raise PartsRefused("a part is too small")
            self._blobs[key] = b"".join(chosen)
            del self._uploads[handle]

    def discard(self, key: str) -> None:
        """Forgets the blob and its parts."""
        with self._lock:
            self._uploads = {handle: upload for handle, upload in self._uploads.items() if upload.key != key}
            self._blobs.pop(key, None)

    def _upload(self, key: str, handle: str) -> _Upload:
        upload = self._uploads.get(handle)
        if upload is None or upload.key != key:
            raise PartsRefused("there is no such upload")
        return upload

    def keys(self) -> list[str]:
        """All keys, of blobs and of what arrives in parts, in order, for tests."""
        with self._lock:
            return sorted({*self._blobs, *(upload.key for upload in self._uploads.values())})


def _tag(data: bytes) -> str:
    return f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'
