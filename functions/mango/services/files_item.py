"""The item of a file, from before its content arrives until after it is gone.

A file is written down before its content (`uploading`, due in a day), so that a process which dies in between leaves
nothing that nobody knows of: the sweeper removes it with whatever has arrived. What is not `ready` is no file yet, or
no longer, for everybody but the upload routes.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from typing import Any

from mango.domain import keys
from mango.domain.errors import NotFound, Unavailable
from mango.domain.principal import Principal
from mango.domain.times import SECOND, rfc3339
from mango.domain.transaction import Ambiguous, Delete, Equals, Item, Put, StoreUnavailable, Transaction, Update, Value
from mango.ports import BlobInfo
from mango.services import creation
from mango.services.context import Context
from mango.services.resources import shown_time

Json = dict[str, Any]

KIND = "files"
ARRIVE_WITHIN = 24 * 3600
"""Seconds until a file whose content has not arrived, or was wrong, is removed."""
EXPIRED_FOR = 24 * 3600
"""Seconds for which an expired file is still known as such, before it is removed."""
REMOVE_AGAIN = 60
"""Seconds until the sweeper finishes a removal that died."""
LISTED = ("list_of", "listed_at")


class FileState(StrEnum):
    """What `state` of the item says."""

    UPLOADING = "uploading"
    READY = "ready"
    FAILED = "failed"
    DELETING = "deleting"


def write_down(ctx: Context, workspace_id: str, filename: str, mime_type: str, **more: Value) -> Item:
    """The item of a file that is about to arrive.

    Raises:
        Unavailable: every answer of the store was lost.
    """
    file_id, now = ctx.ids.new("file"), ctx.clock.now()
    item: Item = {
        "id": file_id,
        "workspace_id": workspace_id,
        "filename": filename,
        "mime_type": mime_type,
        "blob": f"{workspace_id}/files/{file_id}",
        "state": FileState.UPLOADING.value,
        "created_at": now,
        "expires_at": None,
        "scope_id": None,
        **more,
        **keys.due(file_id, now + ARRIVE_WITHIN * SECOND),
    }
    creation.commit_new(ctx, Transaction((Put(keys.file(file_id), item),)))
    return item


def make_ready(ctx: Context, item: Item, info: BlobInfo, expires_in: int | None) -> Item:
    """The content is there: from now on this is a file. Repeating it changes nothing.

    Raises:
        NotFound: it was removed meanwhile; so is its blob, then.
        RetryableConflict: answers of the store were lost, again and again.
    """
    file_id, now = str(item["id"]), ctx.clock.now()
    expires_at = None if expires_in is None else now + expires_in * SECOND
    changes: dict[str, Value] = {
        "state": FileState.READY.value,
        "size": info.size,
        "sha256": info.sha256,
        "created_at": now,
        "expires_at": expires_at,
        **keys.listed(str(item["workspace_id"]), KIND, now, file_id),
    }
    if expires_at is not None:
        changes |= keys.due(file_id, expires_at + EXPIRED_FOR * SECOND)
    gone: tuple[str, ...] = () if expires_at is not None else keys.DUE_ATTRIBUTES

    def update(seen: Item) -> Update | None:
        if seen["state"] == FileState.READY:
            return None
        return Update(keys.file(file_id), changes, remove=gone, conditions=(_still(FileState.UPLOADING),))

    def read() -> Item:
        seen = ctx.store.get(keys.file(file_id))
        if seen is None or seen["state"] in (FileState.DELETING, FileState.FAILED):
            # Whoever removes it may have looked before the content was complete.
            ctx.blobs.delete(str(item["blob"]))
            raise missing(file_id)
        return seen

    return creation.change(ctx, keys.file(file_id), read, update)


def remove(ctx: Context, item: Item, when: Callable[[Item], bool] = lambda _: True) -> bool:
    """Removes a file: hidden first, then its content, then the rest. Another try finishes what one has begun.

    `when` is asked about each reading; False says that it did not allow the removal, or that nothing is there.

    Raises:
        StoreUnavailable: the rest is left to the sweeper, if it is hidden already.
        RetryableConflict: others change it at the same time.
    """
    file_id = str(item["id"])
    key = keys.file(file_id)
    allowed = True

    def update(seen: Item) -> Update | None:
        nonlocal allowed
        allowed = bool(seen) and (seen["state"] == FileState.DELETING or when(seen))
        if not allowed or seen["state"] == FileState.DELETING:
            return None
        changes: dict[str, Value] = {"state": FileState.DELETING.value, "arriving": seen["state"] != FileState.READY}
        changes |= keys.due(file_id, ctx.clock.now() + REMOVE_AGAIN * SECOND)
        return Update(key, changes, remove=LISTED, conditions=(_still(FileState(str(seen["state"]))),))

    hidden = creation.change(ctx, key, lambda: ctx.store.get(key) or {}, update)
    if not allowed:
        return False
    if hidden["arriving"]:
        ctx.blobs.discard(str(hidden["blob"]))
    else:
        ctx.blobs.delete(str(hidden["blob"]))
    with suppress(Ambiguous):  # it is hidden and due, so the sweeper looks again
        ctx.store.commit(Transaction((Delete(key, must_exist=False),)))
    return True


def clean(ctx: Context, item: Item) -> None:
    """For the sweeper: removes a due file whose content never came or was wrong, which expired, or is half gone.

    Raises:
        Unavailable: the store or the blobs do not answer; it stays due.
    """
    now = rfc3339(ctx.clock.now())
    try:
        remove(ctx, item, lambda seen: "due" in seen and str(seen["due"]) <= now)
    except StoreUnavailable as error:
        raise Unavailable(f"the file cannot be removed now: {error}") from None


def _still(state: FileState) -> Equals:
    return Equals("state", state.value)


def missing(file_id: str) -> NotFound:
    return NotFound(f"file {file_id!r} was not found")


def owned(ctx: Context, principal: Principal, file_id: str) -> Item:
    """The item, whatever its state. Raises NotFound unless it is the principal's."""
    item = ctx.store.get(keys.file(file_id)) if is_id(file_id) else None
    if item is None or item["workspace_id"] != principal.workspace_id:
        raise missing(file_id)
    return item


def read_ready(ctx: Context, principal: Principal, file_id: str) -> Item:
    """The item of a file that is there. Raises NotFound, with `file_expired` if it was there."""
    item = owned(ctx, principal, file_id)
    if item["state"] != FileState.READY:
        raise missing(file_id)
    if expired(item, ctx.clock.now()):
        raise NotFound(f"file {file_id!r} has expired", details={"error_code": "file_expired"})
    return item


def is_id(file_id: str) -> bool:
    return file_id.startswith("file_")


def visible(item: Item, now: int) -> bool:
    """Whether it is a file at this time."""
    return item["state"] == FileState.READY and not expired(item, now)


def expired(item: Item, now: int) -> bool:
    at = item["expires_at"]
    return isinstance(at, int) and at <= now


def show(item: Item) -> Json:
    """A ready file on the wire."""
    scope = item["scope_id"]
    return {
        "id": item["id"],
        "type": "file",
        "filename": item["filename"],
        "mime_type": item["mime_type"],
        "size_bytes": item["size"],
        "checksum_sha256": item["sha256"],
        "created_at": shown_time(item["created_at"]),
        "downloadable": True,
        "expires_at": shown_time(item["expires_at"]),
        "scope": None if scope is None else {"type": "session", "id": scope},
    }
