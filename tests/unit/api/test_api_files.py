"""Files over the event path: forms, names, expiry, lists, deletion."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from tests.unit.api.desk import Answer, Desk

BOUNDARY = "b0undary"
FORM = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
CONTENT = bytes(range(256)) * 10 + b"\r\n--b0undar\r\n"


def part(name: str, data: bytes, filename: str | None = None, kind: str | None = None) -> bytes:
    """One part of a form, as clients write it."""
    head = f'Content-Disposition: form-data; name="{name}"'
    if filename is not None:
        head += f'; filename="{filename}"'
    if kind is not None:
        head += f"\r\nContent-Type: {kind}"
    return f"--{BOUNDARY}\r\n{head}\r\n\r\n".encode() + data + b"\r\n"


def form(*parts: bytes) -> bytes:
    return b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()


def upload(desk: Desk, *parts: bytes, **options: Any) -> Answer:
    return desk.post("/v1/files", raw=form(*parts), headers=FORM, **options)


def plain(desk: Desk, filename: str = "a.txt", data: bytes = b"x") -> dict[str, Any]:
    return desk.made(upload(desk, part("file", data, filename, "text/plain")))


def test_round_trip(desk: Desk) -> None:
    made = desk.made(upload(desk, part("file", CONTENT, "naïve 🦊.bin", "image/png")))
    assert made == {
        "id": made["id"],
        "type": "file",
        "filename": "naïve 🦊.bin",
        "mime_type": "image/png",
        "size_bytes": len(CONTENT),
        "checksum_sha256": hashlib.sha256(CONTENT).hexdigest(),
        "created_at": made["created_at"],
        "downloadable": True,
        "expires_at": None,
        "scope": None,
    }
    assert desk.get(f"/v1/files/{made['id']}").json == made
    answer = desk.get(f"/v1/files/{made['id']}/content")
    assert answer.body == CONTENT
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["content-length"] == str(len(CONTENT))
    assert answer.headers["x-content-type-options"] == "nosniff"
    expected = "attachment; filename=\"na_ve _.bin\"; filename*=UTF-8''na%C3%AFve%20%F0%9F%A6%8A.bin"
    assert answer.headers["content-disposition"] == expected


@pytest.mark.parametrize("data", [b"", b"\r\n", b"\r\n--", b"--b0undary", b"\x00" * 70_000, b"\n\r" * 50_000])
def test_contents_that_look_like_boundaries(desk: Desk, data: bytes) -> None:
    made = plain(desk, data=data)
    assert made["size_bytes"] == len(data)
    assert desk.get(f"/v1/files/{made['id']}/content").body == data


def test_json_contents_stay_bytes(desk: Desk) -> None:
    made = desk.made(upload(desk, part("file", b"\xff{", "x.json", "application/json")))
    response = desk.api(
        {
            "httpMethod": "GET",
            "path": f"/v1/files/{made['id']}/content",
            "headers": {"x-api-key": "sk-mango-local-development"},
        }
    )
    assert response["isBase64Encoded"] is True


@pytest.mark.parametrize("before", [True, False])
def test_expiry_may_stand_on_either_side(desk: Desk, before: bool) -> None:
    fields = [part("expires_in_seconds", b"3600"), part("file", b"x", "a")]
    made = desk.made(upload(desk, *(fields if before else fields[::-1])))
    path = f"/v1/files/{made['id']}"
    assert made["expires_at"] > made["created_at"]
    desk.world.clock.advance(3599)
    assert desk.get(path).status == 200
    desk.world.clock.advance(1)
    for gone in (path, f"{path}/content"):
        answer = desk.get(gone)
        assert answer.status == 404
        assert answer.json["error"]["details"] == {"error_code": "file_expired"}
    assert desk.get("/v1/files").json["data"] == []
    assert desk.get(f"/v1/files?ids[]={made['id']}").json["data"] == []
    assert desk.call("DELETE", path).status == 200


FILE = part("file", b"x", "a.txt")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (form(), "file: is required"),
        (form(part("expires_in_seconds", b"3600")), "file: is required"),
        (form(part("other", b"x"), FILE), "other: is not a known field; remove it"),
        (form(FILE, part("other", b"x")), "other: is not a known field; remove it"),
        (form(FILE, FILE), "file: is given more than once"),
        (form(FILE, *[part("expires_in_seconds", b"3600")] * 2), "expires_in_seconds: is given more than once"),
        (form(FILE, part("expires_in_seconds", b"3599")), "expires_in_seconds: must be a whole number from 3600"),
        (form(FILE, part("expires_in_seconds", b"7776001")), "expires_in_seconds: must be a whole number from 3600"),
        (form(FILE, part("expires_in_seconds", b"1e4")), "expires_in_seconds: must be a whole number from 3600"),
        (form(FILE, part("expires_in_seconds", "３６００".encode())), "expires_in_seconds: must be a whole number"),
        (form(FILE, part("expires_in_seconds", b"\xff")), "expires_in_seconds: must be UTF-8"),
        (form(FILE, part("expires_in_seconds", b"1" * 2000)), "expires_in_seconds: must have at most 1024 bytes"),
        (form(part("file", b"x", "a/b")), "file: filename must not hold the character '/'"),
        (form(part("file", b"x", "..")), "file: filename must not be '..'"),
        (form(part("file", b"x", "a\x01")), "file: filename must not hold the character '\\x01'"),
        (form(part("file", b"x", "x" * 256)), "file: must have a filename of 1 to 255 characters, has 256"),
        (form(part("file", b"x", "a", "no type")), "file: content type must look like 'text/plain'"),
        (FILE, "body: the form ends before its closing boundary"),
        (FILE[:-10], "body: the form ends before its closing boundary"),
        (b"", "body: the form ends before its closing boundary"),
        (b"nonsense", "body: is not valid multipart/form-data"),
        (form(b"--b0undary\r\nContent-Disposition: form-data\r\n\r\nx\r\n"), "body: a part has no name"),
        (form(b"--b0undary\r\nX: " + b"x" * 20_000 + b"\r\n\r\nx\r\n"), "body: "),
    ],
)
def test_refused_forms_leave_nothing(desk: Desk, body: bytes, said: str) -> None:
    status, kind, message = desk.post("/v1/files", raw=body, headers=FORM).error
    assert (status, kind) == (400, "invalid_request_error")
    assert message.startswith(said)
    assert desk.get("/v1/files").json["data"] == []
    assert desk.world.ctx.blobs._blobs == {}  # type: ignore[attr-defined]


@pytest.mark.parametrize("size", [256, 257, 60_000])
def test_long_boundaries(desk: Desk, size: int) -> None:
    body = form(FILE).replace(BOUNDARY.encode(), b"x" * size)
    answer = desk.post("/v1/files", raw=body, headers={"Content-Type": f"multipart/form-data; boundary={'x' * size}"})
    if size == 256:
        assert answer.status == 200
    else:
        assert answer.error[:2] == (400, "invalid_request_error")
        assert "boundary" in answer.error[2].lower()


def test_bad_forms_are_no_news_in_the_log(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    assert desk.post("/v1/files", raw=b"nonsense", headers=FORM).status == 400
    assert upload(desk, b"--" + FILE).status == 400
    assert caplog.records == []


def named(parameters: str) -> bytes:
    """A file whose disposition has these parameters."""
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"{parameters}\r\n\r\n'
    return head.encode() + b"x\r\n"


@pytest.mark.parametrize(
    ("parameters", "filename"),
    [
        ("; filename*=UTF-8''na%C3%AFve%20%F0%9F%A6%8A.txt", "naïve 🦊.txt"),
        ("; filename=\"na_ve.txt\"; filename*=utf-8'en'na%C3%AFve.txt", "naïve.txt"),
        ("; filename*=utf-8''na%C3%AFve.txt; filename=na_ve.txt", "naïve.txt"),
        ("; FileName* = iso-8859-1''na%EFve.txt", "naïve.txt"),
        ('; filename="plain.txt"', "plain.txt"),
    ],
)
def test_names_beyond_ascii(desk: Desk, parameters: str, filename: str) -> None:
    """As RFC 5987 spells them; RFC 6266 prefers that spelling where there are two."""
    assert desk.made(upload(desk, named(parameters)))["filename"] == filename


@pytest.mark.parametrize(
    "parameters", ["; filename=\"a; filename*=UTF-8''b\"", '; filename="\\"; filename*=UTF-8\'\'b"']
)
def test_a_quoted_name_holds_no_parameters(desk: Desk, parameters: str) -> None:
    assert upload(desk, named(parameters)).error[2].startswith("file: filename must not hold the character")


@pytest.mark.parametrize(
    "value", ["UTF-8''%FF", "koi8-r''%C1", "naive.txt", "UTF-8''", "UTF-8''a%2Fb", "UTF-8''a%00", "UTF-8''%zz", "''a"]
)
def test_names_that_cannot_be_read_are_refused(desk: Desk, value: str) -> None:
    answer = upload(desk, named(f'; filename="a.txt"; filename*={value}'))
    assert answer.error[:2] == (400, "invalid_request_error")
    assert answer.error[2].startswith("file: ")


@pytest.mark.parametrize("kind", ["", "application/json", "multipart/form-data", "multipart/mixed; boundary=x"])
def test_uploads_are_forms(desk: Desk, kind: str) -> None:
    answer = desk.post("/v1/files", raw=form(FILE), headers={"Content-Type": kind})
    assert answer.error[2] == "content-type must be multipart/form-data with a boundary"


def test_bare_bytes_get_a_name(desk: Desk) -> None:
    made = desk.made(upload(desk, part("file", b"x")))
    assert (made["filename"], made["mime_type"]) == ("file", "application/octet-stream")


def test_lists_page_in_both_directions(desk: Desk) -> None:
    ids = []
    for n in range(5):
        ids.append(plain(desk, f"{n}.txt")["id"])
        desk.world.clock.advance(1)
    newest = ids[::-1]
    first = desk.get("/v1/files?limit=2").json
    assert [one["id"] for one in first["data"]] == newest[:2]
    assert (first["has_more"], first["first_id"], first["last_id"]) == (True, newest[0], newest[1])
    second = desk.get(f"/v1/files?limit=2&page={first['next_page']}").json
    assert [one["id"] for one in second["data"]] == newest[2:4]
    last = desk.get(f"/v1/files?limit=2&after_id={newest[3]}").json
    assert [one["id"] for one in last["data"]] == newest[4:]
    assert (last["has_more"], last["next_page"]) == (False, None)
    back = desk.get(f"/v1/files?limit=2&before_id={newest[3]}").json
    assert [one["id"] for one in back["data"]] == newest[1:3]
    assert back["has_more"] is True
    chosen = desk.get(f"/v1/files?ids[]={ids[0]}&ids[]=file_none&ids[]={ids[3]}").json
    assert [one["id"] for one in chosen["data"]] == [ids[0], ids[3]]
    assert desk.get("/v1/files?scope_id=sesn_x").json["data"] == []


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("limit=0", "limit: must be at least 1"),
        ("limit=1001", "limit: must be at most 1000"),
        ("limit=ten", "limit: must be a whole number"),
        ("page=x", "page: invalid page cursor"),
        ("ids[]=file_x&limit=3", "limit: cannot be combined with `ids`"),
        ("ids[]=file_x&page=x", "page: cannot be combined with `ids`"),
        ("after_id=file_x&before_id=file_y", "before_id: cannot be combined with `after_id`"),
        ("&".join(["ids[]=file_x"] * 101), "ids: must have at most 100 entries, has 101"),
    ],
)
def test_refused_lists(desk: Desk, query: str, said: str) -> None:
    assert desk.get(f"/v1/files?{query}").error == (400, "invalid_request_error", said)


def test_deleted_files_are_gone(desk: Desk) -> None:
    made = plain(desk)
    path = f"/v1/files/{made['id']}"
    assert desk.call("DELETE", path).json == {"id": made["id"], "type": "file_deleted"}
    for method, gone in (("GET", path), ("GET", f"{path}/content"), ("DELETE", path)):
        assert desk.call(method, gone).error[0] == 404
    assert desk.get("/v1/files").json["data"] == []
    assert desk.world.ctx.blobs._blobs == {}  # type: ignore[attr-defined]
