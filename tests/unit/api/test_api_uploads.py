"""Uploads in parts and downloads by redirect, over the event path."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from mango.api.app import create_api
from mango.memory import MemoryBlobs
from mango.services import uploads
from mango.services.context import LAMBDA_BYTES
from tests.unit.api.desk import Answer, Desk
from tests.unit.api.test_api_files import part, plain, upload

Json = dict[str, Any]
SIZE = uploads.PART_BYTES + 5
CONTENT = b"0123456789abcdef" * (SIZE // 16) + b"!" * (SIZE % 16)
ANNOUNCED: Json = {
    "filename": "big.bin",
    "size_bytes": SIZE,
    "sha256": hashlib.sha256(CONTENT).hexdigest(),
    "mime_type": "image/png",
}
TOKENLESS: Json = {"Content-Type": "application/octet-stream"}


def begin(desk: Desk, **fields: Any) -> Json:
    return desk.made(desk.post("/v1/files/uploads", {**ANNOUNCED, **fields}))


def put(desk: Desk, begun: Json, number: int, data: bytes) -> Answer:
    return desk.call("PUT", begun["parts"][number - 1]["url"], raw=data, headers=TOKENLESS)


def send(desk: Desk, begun: Json, content: bytes = CONTENT) -> list[Json]:
    """All parts; what `complete` wants."""
    size = begun["part_size_bytes"]
    pieces = [content[start : start + size] for start in range(0, len(content), size)]
    answers = [put(desk, begun, n, piece) for n, piece in enumerate(pieces, 1)]
    assert [answer.headers["etag"] for answer in answers] == [answer.json["etag"] for answer in answers]
    return [{"part_number": n, "etag": answer.json["etag"]} for n, answer in enumerate(answers, 1)]


def complete(desk: Desk, begun: Json, parts: list[Json]) -> Answer:
    return desk.post(f"/v1/files/uploads/{begun['id']}/complete", {"parts": parts})


def nothing_left(desk: Desk) -> bool:
    blobs = desk.ctx.blobs
    assert isinstance(blobs, MemoryBlobs)
    return not blobs.keys() and not any(key.pk.startswith("FILE#") for key in desk.world.store.dump())


def limited(desk: Desk, carried: int = LAMBDA_BYTES, *, presigns: bool = True) -> None:
    """From now on as on Lambda."""
    limits = replace(desk.ctx.limits, carried_bytes=carried)
    desk.world.ctx = desk.ctx = replace(desk.ctx, limits=limits, blobs=MemoryBlobs(presigns=presigns))
    desk.api = create_api(desk.ctx)


def test_round_trip_and_repetition(desk: Desk) -> None:
    begun = begin(desk)
    assert begun | {"parts": [], "complete_before": ""} == {
        "id": begun["id"],
        "type": "file_upload",
        "status": "uploading",
        "filename": "big.bin",
        "mime_type": "image/png",
        "size_bytes": SIZE,
        "checksum_sha256": ANNOUNCED["sha256"],
        "part_size_bytes": uploads.PART_BYTES,
        "parts": [],
        "url_seconds": 3600,
        "complete_before": "",
        "error": None,
        "file": None,
    }
    assert [one["size_bytes"] for one in begun["parts"]] == [uploads.PART_BYTES, 5]
    assert [one["url"] for one in begun["parts"]] == [f"/v1/files/uploads/{begun['id']}/parts/{n}" for n in (1, 2)]
    send(desk, begun)
    parts = send(desk, begun)  # again, as after a lost answer
    assert desk.get("/v1/files").json["data"] == []
    made = desk.made(complete(desk, begun, parts[::-1]))
    assert (made["type"], made["size_bytes"], made["mime_type"]) == ("file", SIZE, "image/png")
    assert made["checksum_sha256"] == ANNOUNCED["sha256"]
    assert desk.made(complete(desk, begun, parts)) == made
    assert desk.get(f"/v1/files/uploads/{begun['id']}").json["file"] == made
    assert desk.get(f"/v1/files/{made['id']}/content").body == CONTENT
    assert desk.get("/v1/files").json["data"] == [made]
    for refused in (put(desk, begun, 1, b"x"), desk.call("DELETE", f"/v1/files/uploads/{begun['id']}")):
        assert refused.error[0] == 409
    desk.made(desk.call("DELETE", f"/v1/files/{made['id']}"))
    assert complete(desk, begun, parts).error[0] == 404
    assert nothing_left(desk)


def test_it_is_no_file_before_it_is_ready(desk: Desk) -> None:
    begun = begin(desk)
    file_id = begun["id"].replace("upload_", "file_")
    for method, path in (("GET", ""), ("GET", "/content"), ("DELETE", "")):
        assert desk.call(method, f"/v1/files/{file_id}{path}").error[0] == 404
    assert desk.get(f"/v1/files?ids[]={file_id}").json["data"] == []
    assert desk.get(f"/v1/files/uploads/{file_id}").error[0] == 404
    made = plain(desk)
    assert desk.get(f"/v1/files/uploads/{made['id'].replace('file_', 'upload_')}").error[0] == 404


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda parts: parts[:1], "parts: must name each of the parts 1 to 2 once"),
        (lambda parts: [*parts, parts[0]], "parts: must name each of the parts 1 to 2 once"),
        (lambda parts: [parts[0], {**parts[1], "part_number": 3}], "parts: must name each of the parts 1 to 2 once"),
        (lambda parts: [parts[0], {**parts[1], "etag": parts[0]["etag"]}], "parts: the parts do not fit"),
        (lambda parts: [], "parts: must "),
        (lambda parts: [{**parts[0], "etag": "a b"}], "parts.0.etag: must be an entity tag"),
        (lambda parts: parts * 6000, "parts: must have at most 10000 entries, has 12000"),
    ],
)
def test_wrong_parts_can_be_put_right(desk: Desk, change: Callable[[list[Json]], list[Json]], said: str) -> None:
    begun = begin(desk)
    parts = send(desk, begun)
    status, _, message = complete(desk, begun, change(parts)).error
    assert status == 400
    assert message.startswith(said)
    assert complete(desk, begun, parts).status == 200


def test_a_missing_part_can_follow(desk: Desk) -> None:
    begun = begin(desk)
    tag = put(desk, begun, 2, CONTENT[-5:]).json["etag"]
    parts = [{"part_number": n, "etag": tag} for n in (1, 2)]
    assert complete(desk, begun, parts).error[2].startswith("parts: the parts do not fit")
    assert complete(desk, begun, send(desk, begun)).status == 200


@pytest.mark.parametrize(
    ("number", "size", "said"),
    [
        (1, 5, "body: part 1 must have 8388608 bytes, has 5"),
        (2, 6, "part 2 must have 5 bytes, has more"),
        (2, 0, "body: part 2 must have 5 bytes, has 0"),
    ],
)
def test_parts_have_their_size(desk: Desk, number: int, size: int, said: str) -> None:
    assert put(desk, begin(desk), number, b"x" * size).error[2] == said


@pytest.mark.parametrize("number", ["0", "3", "x", "-1", "12345678901234567890"])
def test_parts_have_numbers(desk: Desk, number: str) -> None:
    begun = begin(desk)
    answer = desk.call("PUT", f"/v1/files/uploads/{begun['id']}/parts/{number}", raw=b"x", headers=TOKENLESS)
    assert answer.error == (400, "invalid_request_error", "part_number: must be a whole number from 1 to 2")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"sha256": "0" * 63}, "sha256: must be 64 hexadecimal digits"),
        ({"size_bytes": 0}, "size_bytes: must be at least 1"),
        ({"size_bytes": 524_288_001}, "size_bytes: must be at most 524288000"),
        ({"filename": "a/b"}, "file: filename must not hold the character '/'"),
        ({"mime_type": "no type"}, "file: content type must look like"),
        ({"expires_in_seconds": 5}, "expires_in_seconds: must be at least 3600"),
        ({"more": 1}, "more: is not a known field"),
    ],
)
def test_refused_announcements_leave_nothing(desk: Desk, fields: Json, said: str) -> None:
    status, _, message = desk.post("/v1/files/uploads", {**ANNOUNCED, **fields}).error
    assert status == 400
    assert message.startswith(said)
    assert nothing_left(desk)


def test_other_content_than_announced_never_becomes_a_file(desk: Desk) -> None:
    begun = begin(desk)
    parts = send(desk, begun, CONTENT[:-1] + b"?")
    first = complete(desk, begun, parts)
    assert first.error[:2] == (400, "invalid_request_error")
    assert first.error[2].startswith("parts: the content has SHA-256")
    assert first.json["error"]["details"] == {"error_code": "upload_content_differs"}
    assert complete(desk, begun, parts).error == first.error
    seen = desk.get(f"/v1/files/uploads/{begun['id']}").json
    assert (seen["status"], seen["parts"], seen["file"]) == ("failed", [], None)
    assert seen["error"] in first.error[2]
    assert desk.get("/v1/files").json["data"] == []
    assert desk.ctx.blobs.size(f"wrkspc_test/files/{begun['id'].replace('upload_', 'file_')}") is None
    desk.world.sweep(24 * 3600)
    assert nothing_left(desk)


def test_content_of_another_size_than_announced(desk: Desk) -> None:
    """A store that does not hold clients to the size of their parts."""
    begun = begin(desk)
    (key,) = {str(item["blob"]) for item in desk.world.store.dump().values() if "handle" in item}
    tags = [desk.ctx.blobs.put_part(key, "upload-1", n, b"x" * uploads.PART_BYTES) for n in (1, 2)]
    answer = complete(desk, begun, [{"part_number": n, "etag": tag} for n, tag in enumerate(tags, 1)])
    assert answer.error[2] == f"parts: the content has {2 * uploads.PART_BYTES} bytes, announced were {SIZE}"


def test_aborted_uploads_are_gone(desk: Desk) -> None:
    begun = begin(desk)
    parts = send(desk, begun)
    path = f"/v1/files/uploads/{begun['id']}"
    assert desk.call("DELETE", path).json == {"id": begun["id"], "type": "file_upload_deleted"}
    assert nothing_left(desk)
    for answer in (desk.get(path), desk.call("DELETE", path), complete(desk, begun, parts), put(desk, begun, 1, b"")):
        assert answer.error[0] == 404


def test_abandoned_uploads_are_swept(desk: Desk) -> None:
    begin(desk)
    send(desk, begin(desk))
    assert desk.world.sweep(24 * 3600 - 1).deleted == 0
    assert desk.world.sweep(1).deleted == 2
    assert nothing_left(desk)


def test_expired_files_are_known_for_a_day(desk: Desk) -> None:
    begun = begin(desk, expires_in_seconds=3600)
    parts = send(desk, begun)
    desk.world.clock.advance(1800)  # the hour begins when the file is there
    path = f"/v1/files/{desk.made(complete(desk, begun, parts))['id']}"
    desk.made(upload(desk, part("expires_in_seconds", b"3600"), part("file", b"x", "a")))
    desk.world.sweep(3599)
    assert desk.get(path).status == 200
    desk.world.sweep(1)
    assert desk.get(path).json["error"]["details"] == {"error_code": "file_expired"}
    desk.world.sweep(24 * 3600)
    assert desk.get(path).error[0] == 404
    assert nothing_left(desk)


def test_only_one_call_checks(desk: Desk) -> None:
    begun = begin(desk)
    parts = send(desk, begun)
    inner: list[Answer] = []
    opened = desk.ctx.blobs.open

    def looking(key: str) -> Any:
        inner.append(complete(desk, begun, parts))
        return opened(key)

    desk.ctx.blobs.open = looking  # type: ignore[method-assign]
    assert complete(desk, begun, parts).status == 200
    assert inner[0].error[0] == 409
    assert inner[0].headers["x-should-retry"] == "true"


def test_a_request_here_carries_so_much(desk: Desk) -> None:
    limited(desk, 1000)
    assert plain(desk, data=b"x" * 1000)["size_bytes"] == 1000
    answer = upload(desk, part("file", b"x" * 1001, "a"))
    assert answer.error[:2] == (413, "invalid_request_error")
    assert "POST /v1/files/uploads" in answer.error[2]
    assert answer.json["error"]["details"] == {
        "error_code": "file_needs_upload",
        "upload_route": "POST /v1/files/uploads",
        "max_bytes": 1000,
    }
    assert len(desk.get("/v1/files").json["data"]) == 1


def test_what_lambda_carries_fits_into_its_event() -> None:
    assert LAMBDA_BYTES * 4 / 3 < 6 * 1024 * 1024 - 100_000


def test_parts_go_to_the_store_where_it_takes_them(desk: Desk) -> None:
    limited(desk)
    urls = [urlsplit(one["url"]) for one in begin(desk)["parts"]]
    assert {url.netloc for url in urls} == {"blobs.test"}
    assert [parse_qs(url.query) for url in urls] == [
        {"expires": ["3600"], "upload": ["upload-1"], "part": [n], "size": [size]}
        for n, size in (("1", str(uploads.PART_BYTES)), ("2", "5"))
    ]


def test_large_contents_are_elsewhere(desk: Desk) -> None:
    limited(desk, 1000)
    begun = begin(desk, filename="ü.bin")
    file_id = begun["id"].replace("upload_", "file_")
    handle_parts = [CONTENT[: uploads.PART_BYTES], CONTENT[uploads.PART_BYTES :]]
    blob = f"wrkspc_test/files/{file_id}"
    tags = [desk.ctx.blobs.put_part(blob, "upload-1", n, data) for n, data in enumerate(handle_parts, 1)]
    desk.made(complete(desk, begun, [{"part_number": n, "etag": tag} for n, tag in enumerate(tags, 1)]))
    answer = desk.get(f"/v1/files/{file_id}/content")
    assert (answer.status, answer.body, answer.headers["cache-control"]) == (302, b"", "no-store")
    assert parse_qs(urlsplit(answer.headers["location"]).query) == {
        "expires": ["300"],
        "type": ["image/png"],
        "disposition": ["attachment; filename=\"_.bin\"; filename*=UTF-8''%C3%BC.bin"],
    }
    small = plain(desk, data=b"x" * 1000)
    assert desk.get(f"/v1/files/{small['id']}/content").body == b"x" * 1000
