"""Texts that may be too large for an item: kept in it when small, else in a blob that is written first.

The item then holds the blob's key and SHA-256 (docs/architecture.md, section 4, "Sizes").
"""

from __future__ import annotations

import hashlib

from mango.domain.errors import MangoError
from mango.domain.transaction import Item, Value
from mango.ports import Blobs

INLINE_BYTES = 100 * 1024
"""Largest text that stays in its item."""


def pack(
    blobs: Blobs, attribute: str, text: str, blob_key: str, *, inline_bytes: int = INLINE_BYTES
) -> dict[str, Value]:
    """Attributes that hold the text. Writes the blob when one is needed; writing it twice does no harm."""
    data = text.encode()
    if len(data) <= inline_bytes:
        return {attribute: text}
    info = blobs.put(blob_key, data, "application/json")
    return {attribute: None, f"{attribute}_blob": blob_key, f"{attribute}_sha256": info.sha256}


def unpack(blobs: Blobs, attribute: str, item: Item) -> str:
    """The text that `pack` stored.

    Raises:
        MangoError: the blob is gone or is not what was written.
    """
    text = item[attribute]
    if isinstance(text, str):
        return text
    blob_key = str(item[f"{attribute}_blob"])
    data = blobs.get(blob_key)
    if data is None or hashlib.sha256(data).hexdigest() != item[f"{attribute}_sha256"]:
        raise MangoError(f"stored content {blob_key!r} is missing or damaged")
    return data.decode()


def inline(blobs: Blobs, attribute: str, item: Item) -> Item:
    """The item with the text in its place, however it was stored."""
    return {**item, attribute: unpack(blobs, attribute, item)}
