"""Uploads: files too large for one request. They arrive in parts, by URLs of the blob store or by this API.

An upload is the item of its file before that is ready, under an id of its own; so it is gone when the file is, and
both are made ready by one transaction. The parts may be sent, completed and asked about as often as one likes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

from mango.domain import keys
from mango.domain.errors import Conflict, ContentTooLarge, InvalidRequest, NotFound, RetryableConflict
from mango.domain.principal import Principal
from mango.domain.times import SECOND
from mango.domain.transaction import Equals, Item, Update, Value
from mango.domain.wire.files import check_filename, check_mime_type
from mango.domain.wire.uploads import MAX_PARTS, UploadComplete, UploadCreate
from mango.ports import BlobInfo, PartsRefused
from mango.services import creation
from mango.services.context import Context
from mango.services.files_item import FileState, make_ready, owned, remove, show, write_down

Json = dict[str, Any]

PART_BYTES = 8 * 1024 * 1024
"""Size of every part but the last, unless that makes more than `MAX_PARTS`."""
URL_SECONDS = 3600
"""How long a part's presigned URL is good; asking for the upload again gives fresh ones."""
PREFIX = "upload_"
CHECK_SECONDS = 60
"""For so long nobody else checks what somebody has begun to check."""


def create(ctx: Context, principal: Principal, body: UploadCreate) -> Json:
    """Begins an upload."""
    filename, mime_type = check_filename(body.filename), check_mime_type(body.mime_type)
    item = write_down(
        ctx,
        principal.workspace_id,
        filename,
        mime_type,
        size=body.size_bytes,
        sha256=body.sha256,
        expires_in=body.expires_in_seconds,
        part_bytes=max(PART_BYTES, -(-body.size_bytes // MAX_PARTS)),
        handle=None,
        checked_until=0,
        checked_by="",
    )
    # Only after it is written down, so that the sweeper finds it whatever happens.
    handle = ctx.blobs.begin_parts(str(item["blob"]), mime_type, body.sha256)
    return _show(ctx, _change(ctx, principal, item, lambda seen: None if seen["handle"] else {"handle": handle}))


def retrieve(ctx: Context, principal: Principal, wanted: str) -> Json:
    """How far it is; with fresh URLs while parts may be sent."""
    return _show(ctx, _load(ctx, principal, wanted))


def put_part(ctx: Context, principal: Principal, wanted: str, number: str, chunks: Iterable[bytes]) -> Json:
    """Takes one part, which may be sent again.

    Raises:
        Conflict: the upload is complete.
        ContentTooLarge, InvalidRequest: the part is not as long as it should be.
    """
    item = _load(ctx, principal, wanted)
    if item["state"] != FileState.UPLOADING:
        raise Conflict(f"upload {wanted!r} takes no more parts; it is {item['state']}")
    sizes = _part_sizes(item)
    if not (number.isascii() and number.isdecimal() and len(number) <= 5 and 1 <= int(number) <= len(sizes)):
        raise InvalidRequest(f"must be a whole number from 1 to {len(sizes)}", path="part_number")
    size, data = sizes[int(number) - 1], bytearray()
    for chunk in chunks:
        data += chunk
        if len(data) > size:
            raise ContentTooLarge(f"part {number} must have {size} bytes, has more")
    if len(data) < size:
        raise InvalidRequest(f"part {number} must have {size} bytes, has {len(data)}", path="body")
    try:
        tag = ctx.blobs.put_part(str(item["blob"]), str(item["handle"]), int(number), bytes(data))
    except PartsRefused as error:
        raise Conflict(f"upload {wanted!r} takes no more parts: {error}") from None
    return {"part_number": int(number), "etag": tag}


def complete(ctx: Context, principal: Principal, wanted: str, body: UploadComplete) -> Json:
    """Puts the parts together, reads all of it again and compares; the file, whatever call made it ready.

    Raises:
        InvalidRequest: parts are missing or other; or the content is not what was announced, which is final.
        RetryableConflict: another call checks the content at this moment.
    """
    item = _load(ctx, principal, wanted)
    if item["state"] == FileState.UPLOADING:
        try:
            ctx.blobs.complete_parts(str(item["blob"]), str(item["handle"]), _tags(item, body))
        except PartsRefused as error:
            raise InvalidRequest(f"the parts do not fit: {error}", path="parts") from None
        item = _check(ctx, principal, _claim(ctx, principal, item))
    if item["state"] == FileState.FAILED:
        raise InvalidRequest(str(item["reason"]), path="parts", details={"error_code": "upload_content_differs"})
    return show(item)


def abort(ctx: Context, principal: Principal, wanted: str) -> Json:
    """Forgets an upload and its parts.

    Raises:
        Conflict: it is a file by now.
    """
    item = _load(ctx, principal, wanted)
    if not remove(ctx, item, lambda seen: seen["state"] != FileState.READY):
        raise Conflict(f"upload {wanted!r} is complete; delete file {item['id']!r} instead")
    return {"id": wanted, "type": "file_upload_deleted"}


def _tags(item: Item, body: UploadComplete) -> list[str]:
    tags = {part.part_number: part.etag for part in body.parts}
    wanted = len(_part_sizes(item))
    if len(body.parts) != wanted or tags.keys() != set(range(1, wanted + 1)):
        raise InvalidRequest(f"must name each of the parts 1 to {wanted} once", path="parts")
    return [tags[number] for number in range(1, wanted + 1)]


def _claim(ctx: Context, principal: Principal, item: Item) -> Item:
    """So that calls which are repeated while one works do not all read the content."""
    mine = ctx.ids.new("check")

    def claim(seen: Item) -> dict[str, Value] | None:
        now = ctx.clock.now()
        if seen["checked_by"] == mine:
            return None
        if _int(seen["checked_until"]) > now:
            raise RetryableConflict(f"upload {upload_id(item)!r} is being checked; try again")
        return {"checked_until": now + CHECK_SECONDS * SECOND, "checked_by": mine}

    return _change(ctx, principal, item, claim)


def _check(ctx: Context, principal: Principal, item: Item) -> Item:
    """Compares the whole content with what was announced, and commits the verdict."""
    if item["state"] != FileState.UPLOADING:
        return item
    wrong = _difference(ctx, item)
    if not wrong:
        expires_in = item["expires_in"]
        info = BlobInfo(_int(item["size"]), str(item["sha256"]))
        return make_ready(ctx, item, info, None if expires_in is None else _int(expires_in))
    verdict: dict[str, Value] = {"state": FileState.FAILED.value, "reason": wrong}
    judged = _change(ctx, principal, item, lambda _: verdict)
    if judged["state"] == FileState.FAILED:
        ctx.blobs.discard(str(item["blob"]))
    return judged


def _difference(ctx: Context, item: Item) -> str:
    """In what the content is not what was announced; empty if it is. The digest takes reading all of it, since S3
    has a SHA-256 of a blob in parts only as one of the parts' digests."""
    size, blob = _int(item["size"]), str(item["blob"])
    arrived = ctx.blobs.size(blob)
    if arrived is not None and arrived != size:
        return f"the content has {arrived} bytes, announced were {size}"
    chunks = ctx.blobs.open(blob)
    if chunks is None:
        raise missing_upload(upload_id(item))  # aborted a moment ago
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    if digest.hexdigest() != item["sha256"]:
        return f"the content has SHA-256 {digest.hexdigest()}, announced was {item['sha256']}"
    return ""


def _change(ctx: Context, principal: Principal, item: Item, decide: Callable[[Item], dict[str, Value] | None]) -> Item:
    """Changes an upload under way; what is not under way any more, and what `decide` has no changes for, stays."""
    key = keys.file(str(item["id"]))

    def update(seen: Item) -> Update | None:
        changes = decide(seen) if seen["state"] == FileState.UPLOADING else None
        if changes is None:
            return None
        as_read = tuple(Equals(name, seen[name]) for name in ("state", "handle", "checked_by"))
        return Update(key, changes, conditions=as_read)

    return creation.change(ctx, key, lambda: _owned(ctx, principal, upload_id(item)), update)


def _owned(ctx: Context, principal: Principal, wanted: str) -> Item:
    try:
        item = owned(ctx, principal, wanted.replace(PREFIX, "file_", 1))
    except NotFound:
        raise missing_upload(wanted) from None
    if not wanted.startswith(PREFIX) or "handle" not in item or item["state"] == FileState.DELETING:
        raise missing_upload(wanted)
    return item


def _load(ctx: Context, principal: Principal, wanted: str) -> Item:
    item = _owned(ctx, principal, wanted)
    if item["handle"] is None:  # whoever began it died before it could be named to anybody
        raise missing_upload(wanted)
    return item


def upload_id(item: Item) -> str:
    """The upload that a file comes by."""
    return str(item["id"]).replace("file_", PREFIX, 1)


def missing_upload(wanted: str) -> NotFound:
    return NotFound(f"upload {wanted!r} was not found")


def _part_sizes(item: Item) -> list[int]:
    whole, rest = divmod(_int(item["size"]), _int(item["part_bytes"]))
    return [_int(item["part_bytes"])] * whole + ([rest] if rest else [])


def _show(ctx: Context, item: Item) -> Json:
    under_way, ready = item["state"] == FileState.UPLOADING, item["state"] == FileState.READY
    return {
        "id": upload_id(item),
        "type": "file_upload",
        "status": item["state"],
        "filename": item["filename"],
        "mime_type": item["mime_type"],
        "size_bytes": item["size"],
        "checksum_sha256": item["sha256"],
        "part_size_bytes": item["part_bytes"],
        "parts": _parts(ctx, item) if under_way else [],
        "url_seconds": URL_SECONDS,
        "complete_before": None if ready else item["due"],
        "error": item.get("reason"),
        "file": show(item) if ready else None,
    }


def _parts(ctx: Context, item: Item) -> list[Json]:
    blob, handle = str(item["blob"]), str(item["handle"])
    here = f"/v1/files/uploads/{upload_id(item)}/parts"
    return [
        {
            "part_number": n,
            "size_bytes": size,
            "url": ctx.blobs.presign_part(blob, handle, n, size, URL_SECONDS) or f"{here}/{n}",
        }
        for n, size in enumerate(_part_sizes(item), 1)
    ]


def _int(value: Value) -> int:
    assert isinstance(value, int)
    return value
