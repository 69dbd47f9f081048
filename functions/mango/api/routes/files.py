"""Files. Uploads and downloads go through in pieces where the carrier has pieces."""

from __future__ import annotations

from mango.api.messages import NoQuery, Request, Response, json_response
from mango.api.multipart import FormReader
from mango.api.router import Route
from mango.domain.wire.files import MAX_FILE_BYTES, FileListQuery, check_expiry, disposition
from mango.services import files
from mango.services.context import Context

MAX_FORM = MAX_FILE_BYTES + 1024 * 1024
"""Bytes of an upload's body: the largest file, and room for the form around it."""
FIELDS = frozenset({"expires_in_seconds"})


def upload(ctx: Context, request: Request) -> Response:
    request.query(NoQuery)
    form = FormReader(request.headers.get("content-type", ""), request.stream(), FIELDS, MAX_FORM)
    part, chunks = form.file()
    shown = files.store_upload(
        ctx,
        request.who.workspace_id,
        part.filename or "file",
        part.content_type,
        chunks,
        lambda: check_expiry(form.fields.get("expires_in_seconds")),
    )
    return json_response(shown)


def list_page(ctx: Context, request: Request) -> Response:
    return json_response(files.list_page(ctx, request.who, request.query(FileListQuery)))


def retrieve(ctx: Context, request: Request) -> Response:
    request.query(NoQuery)
    return json_response(files.retrieve(ctx, request.who, request.parameters["file_id"]))


def content(ctx: Context, request: Request) -> Response:
    request.query(NoQuery)
    opened = files.open_content(ctx, request.who, request.parameters["file_id"])
    if isinstance(opened, files.Elsewhere):
        # The URL is a credential for a while, so nobody on the way may keep it.
        return Response(302, {"location": opened.url, "cache-control": "no-store", "content-length": "0"})
    headers = {
        "content-type": opened.mime_type,
        "content-length": str(opened.size),
        "content-disposition": disposition(opened.filename),
        "x-content-type-options": "nosniff",
    }
    return Response(200, headers, chunks=opened.chunks)


def delete(ctx: Context, request: Request) -> Response:
    request.query(NoQuery)
    return json_response(files.delete(ctx, request.who, request.parameters["file_id"]))


ROUTES = (
    Route("POST", "/v1/files", upload),
    Route("GET", "/v1/files", list_page),
    Route("GET", "/v1/files/{file_id}", retrieve),
    Route("GET", "/v1/files/{file_id}/content", content),
    Route("DELETE", "/v1/files/{file_id}", delete),
)
