"""Files: contents in the blob store, what is known about them in the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from mango.domain import keys
from mango.domain.errors import ContentTooLarge, InvalidRequest, NotFound
from mango.domain.principal import Principal
from mango.domain.times import SECOND
from mango.domain.transaction import Delete, Equals, Item, Put, Refused, StoreUnavailable, Transaction, Update
from mango.domain.wire.files import MAX_FILE_BYTES, FileListQuery, check_filename, check_mime_type
from mango.ports import BlobInfo
from mango.services import creation
from mango.services.context import Context
from mango.services.listing import Entry, Window, newest
from mango.services.paging import Cursors, check_limit
from mango.services.resources import page_of, place_of, shown_time

Json = dict[str, Any]

KIND = "files"
DEFAULT_LIMIT, MAX_LIMIT = 20, 1000
Expiry = int | None | Callable[[], int | None]
"""Seconds until a file expires; as a function where a form says so only after the content."""


class Content(NamedTuple):
    """A file opened for reading."""

    filename: str
    mime_type: str
    size: int
    chunks: Iterator[bytes]


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
        ContentTooLarge: there is more than a file may hold; nothing is kept.
        InvalidRequest: name, media type or expiry are not valid.
    """
    name, kind = check_filename(filename), check_mime_type(mime_type)
    file_id = ctx.ids.new("file")
    blob = f"{workspace_id}/files/{file_id}"
    expiry: list[int | None] = []

    def content() -> Iterator[bytes]:
        yield from _bounded(chunks)
        # Asked for within the stream, so that nothing is kept when the form's last field is wrong.
        expiry.append(expires_in_seconds() if callable(expires_in_seconds) else expires_in_seconds)

    info = ctx.blobs.put_stream(blob, content(), kind)
    (seconds,), now = expiry, ctx.clock.now()
    item: Item = {
        "id": file_id,
        "workspace_id": workspace_id,
        "filename": name,
        "mime_type": kind,
        "blob": blob,
        "created_at": now,
        "expires_at": None if seconds is None else now + seconds * SECOND,
        "scope_id": None,
        "deleting": False,
        **_content(info),
        **keys.listed(workspace_id, KIND, now, file_id),
    }
    try:
        creation.commit_new(ctx, Transaction((Put(keys.file(file_id), item),)))
    except (Refused, StoreUnavailable):
        ctx.blobs.delete(blob)  # certainly no item names it
        raise
    return _show(item)


def _content(info: BlobInfo) -> dict[str, str | int]:
    return {"size": info.size, "sha256": info.sha256}


def _bounded(chunks: Iterable[bytes]) -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > MAX_FILE_BYTES:
            raise ContentTooLarge(f"file: must have at most {MAX_FILE_BYTES} bytes")
        yield chunk


def retrieve(ctx: Context, principal: Principal, file_id: str) -> Json:
    """What is known about a file."""
    return _show(_read(ctx, principal, file_id))


def open_content(ctx: Context, principal: Principal, file_id: str) -> Content:
    """The file's bytes, read as they are taken."""
    item = _read(ctx, principal, file_id)
    chunks = ctx.blobs.open(str(item["blob"]))
    if chunks is None:
        raise missing(file_id)  # deleted a moment ago
    size = item["size"]
    assert isinstance(size, int)
    return Content(str(item["filename"]), str(item["mime_type"]), size, chunks)


def delete(ctx: Context, principal: Principal, file_id: str) -> Json:
    """Removes a file: hidden first, then its content, then the rest, so that a second try can finish the first."""
    key = keys.file(file_id)
    creation.change(ctx, key, lambda: _owned(ctx, principal, file_id), lambda item: _hiding(item, file_id))
    ctx.blobs.delete(f"{principal.workspace_id}/files/{file_id}")
    ctx.store.commit(Transaction((Delete(key, must_exist=False),)))
    return {"id": file_id, "type": "file_deleted"}


def _hiding(item: Item, file_id: str) -> Update | None:
    if item["deleting"]:
        return None
    changes = {"deleting": True}
    return Update(keys.file(file_id), changes, remove=("list_of", "listed_at"), conditions=(Equals("deleting", False),))


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
        beyond = str(_read(ctx, principal, anchor)["listed_at"])
    now = ctx.clock.now()

    def show(item: Item) -> Json | None:
        hidden = item["deleting"] or _expired(item, now) or query.scope_id not in (None, item["scope_id"])
        return None if hidden else _show(item)

    backwards = query.before_id is not None
    partition = keys.listing(principal.workspace_id, KIND)
    found = newest(ctx, partition, show, limit, Window(beyond=beyond), ascending=backwards)
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
    wanted = [file_id for file_id in dict.fromkeys(ids) if _is_id(file_id)]
    items = ctx.store.get_many([keys.file(file_id) for file_id in wanted]) if wanted else []
    now = ctx.clock.now()
    return [
        Entry("", _show(item))
        for item in items
        if item is not None and _visible(item, principal) and not _expired(item, now)
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


def missing(file_id: str) -> NotFound:
    return NotFound(f"file {file_id!r} was not found")


def _is_id(file_id: str) -> bool:
    return file_id.startswith("file_")


def _visible(item: Item, principal: Principal) -> bool:
    return item["workspace_id"] == principal.workspace_id and not item["deleting"]


def _expired(item: Item, now: int) -> bool:
    at = item["expires_at"]
    return isinstance(at, int) and at <= now


def _owned(ctx: Context, principal: Principal, file_id: str) -> Item:
    item = ctx.store.get(keys.file(file_id)) if _is_id(file_id) else None
    if item is None or item["workspace_id"] != principal.workspace_id:
        raise missing(file_id)
    return item


def _read(ctx: Context, principal: Principal, file_id: str) -> Item:
    item = _owned(ctx, principal, file_id)
    if item["deleting"]:
        raise missing(file_id)
    if _expired(item, ctx.clock.now()):
        raise NotFound(f"file {file_id!r} has expired", details={"error_code": "file_expired"})
    return item


def _show(item: Item) -> Json:
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
