"""Uploads in parts, an extension of the protocol (docs/api-files.md)."""

from __future__ import annotations

from mango.api.messages import NoQuery, Request, Response, json_response
from mango.api.router import Route
from mango.domain.wire.uploads import UploadComplete, UploadCreate
from mango.services import uploads
from mango.services.context import Context


def create(ctx: Context, request: Request) -> Response:
    request.query(NoQuery)
    return json_response(uploads.create(ctx, request.who, request.json(UploadCreate)))


def retrieve(ctx: Context, request: Request) -> Response:
    request.query(NoQuery)
    return json_response(uploads.retrieve(ctx, request.who, request.parameters["upload_id"]))


def put_part(ctx: Context, request: Request) -> Response:
    """Answers as S3 does, with the entity tag in a header."""
    request.query(NoQuery)
    upload_id, number = request.parameters["upload_id"], request.parameters["part_number"]
    part = uploads.put_part(ctx, request.who, upload_id, number, request.stream())
    return json_response(part, headers={"etag": part["etag"]})


def complete(ctx: Context, request: Request) -> Response:
    request.query(NoQuery)
    body = request.json(UploadComplete)
    return json_response(uploads.complete(ctx, request.who, request.parameters["upload_id"], body))


def abort(ctx: Context, request: Request) -> Response:
    request.query(NoQuery)
    return json_response(uploads.abort(ctx, request.who, request.parameters["upload_id"]))


ROUTES = (
    Route("POST", "/v1/files/uploads", create),
    Route("GET", "/v1/files/uploads/{upload_id}", retrieve),
    Route("DELETE", "/v1/files/uploads/{upload_id}", abort),
    Route("PUT", "/v1/files/uploads/{upload_id}/parts/{part_number}", put_part),
    Route("POST", "/v1/files/uploads/{upload_id}/complete", complete),
)
