"""Blobs in parts: complete once whatever is repeated, gone without a trace when discarded."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from mango.aws.blobs import S3Blobs
from mango.aws.clients import AwsSettings, Clients
from mango.ports import PartsRefused
from tests.contract.backends import Backend

MB = 1024 * 1024
PARTS = [b"a" * (5 * MB), b"b" * (5 * MB), b"c"]


def begun(backend: Backend, key: str, parts: list[bytes]) -> tuple[str, list[str]]:
    handle = backend.blobs.begin_parts(key, "text/plain", "0" * 64)
    return handle, [backend.blobs.put_part(key, handle, n, data) for n, data in enumerate(parts, 1)]


def test_parts_become_a_blob(backend: Backend, pk: str) -> None:
    handle, tags = begun(backend, pk, PARTS)
    assert backend.blobs.size(pk) is None
    assert backend.blobs.put_part(pk, handle, 2, PARTS[1]) == tags[1]
    backend.blobs.complete_parts(pk, handle, tags)
    backend.blobs.complete_parts(pk, handle, tags)
    assert backend.blobs.size(pk) == sum(map(len, PARTS))
    assert backend.blobs.get(pk) == b"".join(PARTS)


def test_one_small_part_is_enough(backend: Backend, pk: str) -> None:
    handle, tags = begun(backend, pk, [b"x"])
    backend.blobs.complete_parts(pk, handle, [tag.strip('"') for tag in tags])
    assert backend.blobs.get(pk) == b"x"


def test_a_later_part_takes_the_place_of_an_earlier(backend: Backend, pk: str) -> None:
    handle, old = begun(backend, pk, [b"x"])
    new = backend.blobs.put_part(pk, handle, 1, b"y")
    with pytest.raises(PartsRefused):
        backend.blobs.complete_parts(pk, handle, old)
    backend.blobs.complete_parts(pk, handle, [new])
    assert backend.blobs.get(pk) == b"y"


def test_wrong_parts_are_refused_and_can_be_put_right(backend: Backend, pk: str) -> None:
    handle, tags = begun(backend, pk, PARTS)
    for wrong in ([tags[0], tags[2], tags[1]], [*tags, tags[0]]):
        with pytest.raises(PartsRefused):
            backend.blobs.complete_parts(pk, handle, wrong)
    backend.blobs.complete_parts(pk, handle, tags)
    assert backend.blobs.get(pk) == b"".join(PARTS)


def test_small_parts_are_refused(backend: Backend, pk: str) -> None:
    handle, tags = begun(backend, pk, [b"a", b"b"])
    with pytest.raises(PartsRefused):
        backend.blobs.complete_parts(pk, handle, tags)
    backend.blobs.discard(pk)  # other tests of this bucket look for parts that were left behind


def test_discarded_parts_are_gone(backend: Backend, pk: str) -> None:
    """Also what the handle of which is not known, but not what has a name that goes on."""
    begun(backend, pk, [b"x"])
    begun(backend, pk, [b"y"])
    other, other_tags = begun(backend, f"{pk}2", [b"z"])
    backend.blobs.discard(pk)
    backend.blobs.discard(pk)
    backend.blobs.complete_parts(f"{pk}2", other, other_tags)
    backend.blobs.put(pk, b"x")
    backend.blobs.discard(pk)
    assert backend.blobs.get(pk) is None
    assert backend.blobs.get(f"{pk}2") == b"z"


def test_parts_for_what_is_over_are_refused(backend: Backend, pk: str) -> None:
    backend.lacks("moto", "fails with an exception of its own")
    handle, tags = begun(backend, pk, [b"x"])
    backend.blobs.discard(pk)
    with pytest.raises(PartsRefused):
        backend.blobs.put_part(pk, handle, 1, b"x")
    with pytest.raises(PartsRefused):
        backend.blobs.complete_parts(pk, handle, tags)


def test_no_urls_where_nobody_takes_them(roto_clients: Clients) -> None:
    blobs = S3Blobs(roto_clients.s3, "b", presigns=False)
    assert blobs.presign_get("k", 60, "a/b", "inline") is None
    assert blobs.presign_part("k", "u", 1, 1, 60) is None


@pytest.mark.parametrize("region", ["us-east-1", "eu-central-1"])
def test_urls_say_what_they_are_for(region: str) -> None:
    """Signed by version 4 for the bucket's own host, the size of a part with it."""
    clients = Clients(AwsSettings(region, access_key_id="id", secret_access_key="secret"))
    blobs = S3Blobs(clients.s3, "bucket-x")
    get = urlsplit(blobs.presign_get("w/k", 60, "text/plain", "attachment") or "")
    put = urlsplit(blobs.presign_part("w/k", "u", 7, 99, 3600) or "")
    host = "bucket-x.s3.amazonaws.com" if region == "us-east-1" else f"bucket-x.s3.{region}.amazonaws.com"
    assert (get.scheme, get.netloc, get.path) == ("https", host, "/w/k")
    query = parse_qs(get.query)
    assert (query["X-Amz-Algorithm"], query["X-Amz-Expires"]) == (["AWS4-HMAC-SHA256"], ["60"])
    assert query["response-content-disposition"] == ["attachment"]
    assert query["response-content-type"] == ["text/plain"]
    query = parse_qs(put.query)
    assert (query["uploadId"], query["partNumber"], query["X-Amz-Expires"]) == (["u"], ["7"], ["3600"])
    assert query["X-Amz-SignedHeaders"] == ["content-length;host"]
    clients.close()
