"""Files: contents in the blob store, what is known about them in the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from mango.domain import keys
from mango.domain.errors import ContentTooLarge, InvalidRequest, MangoError
from mango.domain.principal import Principal
from mango.domain.transaction import Ambiguous, Item, StoreUnavailable
from mango.domain.wire.files import MAX_FILE_BYTES, FileListQuery, check_filename, check_mime_type, disposition
from mango.services.context import Context
from mango.services.files_item import (
    KIND,
    FileState,
    is_id,
    make_ready,
    missing,
    owned,
    read_ready,
    remove,
    show,
    visible,
    write_down,
)
from mango.services.listing import Entry, Window, newest
from mango.services.paging import Cursors, check_limit
from mango.services.resources import page_of, place_of

Json = dict[str, Any]

DEFAULT_LIMIT, MAX_LIMIT = 20, 1000
DOWNLOAD_SECONDS = 300
"""How long a presigned URL may be used to begin a download."""
UPLOAD_ROUTE = "POST /v1/files/uploads"
"""Where contents go that are too large for a request."""
Expiry = int | None | Callable[[], int | None]
"""Seconds until a file expires; as a function where a form says so only after the content."""


class Content(NamedTuple):
    """A file opened for reading."""

    filename: str
    mime_type: str
    size: int
    chunks: Iterator[bytes]


class Elsewhere(NamedTuple):
    """A file whose content is fetched from somewhere else."""

    url: str


def store_upload(
    ctx: Context,
    workspace_id: str,
    filename: str,
    mime_type: str | None,
    chunks: Iterable[bytes],
    expires_in_seconds: Expiry = None,
) -> Json:
    """Keeps what the chunks hold, with bounded memory. The file exists when this returns, and not before.

    Raises:
        ContentTooLarge: there is more than a file, or a request here, may hold; nothing is kept.
        InvalidRequest: name, media type or expiry are not valid.
    """
    item = write_down(ctx, workspace_id, check_filename(filename), check_mime_type(mime_type))
    expiry: list[int | None] = []

    def content() -> Iterator[bytes]:
        yield from _bounded(chunks, ctx.limits.carried_bytes)
        # Asked for within the stream, so that nothing is kept when the form's last field is wrong.
        expiry.append(expires_in_seconds() if callable(expires_in_seconds) else expires_in_seconds)

    try:
        info = ctx.blobs.put_stream(str(item["blob"]), content(), str(item["mime_type"]))
        return show(make_ready(ctx, item, info, expiry[0]))
    except (MangoError, StoreUnavailable, Ambiguous):
        # At once where that is possible; what stays is removed by the sweeper.
        with suppress(MangoError, StoreUnavailable, Ambiguous):
            remove(ctx, item, lambda seen: seen["state"] != FileState.READY)
        raise


def _bounded(chunks: Iterable[bytes], carried: int | None) -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > MAX_FILE_BYTES:
            raise ContentTooLarge(f"file: must have at most {MAX_FILE_BYTES} bytes")
        if carried is not None and size > carried:
            raise too_large_to_carry(carried)
        yield chunk


def too_large_to_carry(carried: int) -> ContentTooLarge:
    """The file may be that large, the request may not: says where to go."""
    return ContentTooLarge(
        f"file: this route takes at most {carried} bytes here; larger files go to {UPLOAD_ROUTE}",
        details={"error_code": "file_needs_upload", "upload_route": UPLOAD_ROUTE, "max_bytes": carried},
    )


def retrieve(ctx: Context, principal: Principal, file_id: str) -> Json:
    """What is known about a file."""
    return show(read_ready(ctx, principal, file_id))


def open_content(ctx: Context, principal: Principal, file_id: str) -> Content | Elsewhere:
    """The file's bytes, read as they are taken, or where they are if one answer cannot carry them."""
    item = read_ready(ctx, principal, file_id)
    blob, filename, mime_type, size = (item[name] for name in ("blob", "filename", "mime_type", "size"))
    assert isinstance(size, int)
    if ctx.limits.carried_bytes is not None and size > ctx.limits.carried_bytes:
        url = ctx.blobs.presign_get(str(blob), DOWNLOAD_SECONDS, str(mime_type), disposition(str(filename)))
        if url is not None:
            return Elsewhere(url)
    chunks = ctx.blobs.open(str(blob))
    if chunks is None:
        raise missing(file_id)  # deleted a moment ago
    return Content(str(filename), str(mime_type), size, chunks)


def delete(ctx: Context, principal: Principal, file_id: str) -> Json:
    """Removes a file, or finishes that. What is still uploading is no file yet."""
    item = owned(ctx, principal, file_id)
    removable = (FileState.READY, FileState.DELETING)
    if not (item["state"] in removable and remove(ctx, item, lambda seen: seen["state"] in removable)):
        raise missing(file_id)
    return {"id": file_id, "type": "file_deleted"}


def list_page(ctx: Context, principal: Principal, query: FileListQuery) -> Json:
    """Newest first; answers in the form of both generations of clients."""
    _check_ways(query)
    if query.ids is not None:
        return _answer(_by_ids(ctx, principal, query.ids), None)
    limit = check_limit(query.limit, DEFAULT_LIMIT, MAX_LIMIT)
    cursors = Cursors(KIND, principal.workspace_id, filters={"scope_id": query.scope_id}, order="desc")
    beyond = place_of(cursors, query.page)
    anchor = query.after_id or query.before_id
    if anchor is not None:
        beyond = str(read_ready(ctx, principal, anchor)["listed_at"])
    now = ctx.clock.now()

    def entry(item: Item) -> Json | None:
        shown = visible(item, now) and query.scope_id in (None, item["scope_id"])
        return show(item) if shown else None

    backwards = query.before_id is not None
    partition = keys.listing(principal.workspace_id, KIND)
    found = newest(ctx, partition, entry, limit, Window(beyond=beyond), ascending=backwards)
    if backwards:
        return _answer(found.entries[::-1], None) | {"has_more": found.more}
    return _answer(found.entries, page_of(cursors, found)["next_page"])


def _check_ways(query: FileListQuery) -> None:
    given = [name for name in ("ids", "page", "after_id", "before_id") if getattr(query, name) is not None]
    if query.ids is not None and query.limit is not None:
        given.append("limit")
    if len(given) > 1:
        raise InvalidRequest(f"cannot be combined with `{given[0]}`", path=given[1])


def _by_ids(ctx: Context, principal: Principal, ids: list[str]) -> list[Entry]:
    wanted = [file_id for file_id in dict.fromkeys(ids) if is_id(file_id)]
    items = ctx.store.get_many([keys.file(file_id) for file_id in wanted]) if wanted else []
    now = ctx.clock.now()
    return [
        Entry("", show(item))
        for item in items
        if item is not None and item["workspace_id"] == principal.workspace_id and visible(item, now)
    ]


def _answer(entries: list[Entry], next_page: str | None) -> Json:
    data = [entry.shown for entry in entries]
    return {
        "data": data,
        "next_page": next_page,
        "has_more": next_page is not None,
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
    }
