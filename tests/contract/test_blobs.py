"""Blobs: whole or not at all, with bounded memory."""

from __future__ import annotations

import hashlib
import socket
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace

import pytest

from mango.aws.blobs import PART_BYTES, S3Blobs
from mango.aws.clients import Clients
from mango.domain.transaction import StoreUnavailable
from mango.ports import BlobInfo
from tests.contract.backends import BUCKET, Backend
from tests.support.roto import RotoServer

MB = 1024 * 1024
SIZES = [0, 1, MB + 1, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 2 * PART_BYTES]


def info(data: bytes) -> BlobInfo:
    return BlobInfo(len(data), hashlib.sha256(data).hexdigest())


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


def test_put_get_overwrite_delete(backend: Backend, pk: str) -> None:
    blobs = backend.blobs
    for data in (b"first \x00\xff", b""):
        assert blobs.put(pk, data) == info(data)
        assert blobs.get(pk) == data
    blobs.delete(pk)
    assert blobs.get(pk) is None
    assert blobs.open(pk) is None
    blobs.delete(pk)


@pytest.mark.parametrize("key", ["ws_1/a b/ü+%/\U0001f96d.txt", "ws_1//double/../dots", "ws_1/?x=1&y#z"])
def test_any_key(backend: Backend, pk: str, key: str) -> None:
    backend.blobs.put(f"{pk}/{key}", b"data", "text/plain")
    assert backend.blobs.get(f"{pk}/{key}") == b"data"
    assert backend.blobs.get(f"{pk}/{key}x") is None


@pytest.mark.parametrize("size", SIZES)
def test_streams(backend: Backend, pk: str, size: int) -> None:
    data = (b"0123456789abcdef" * (size // 16 + 1))[:size]
    assert backend.blobs.put_stream(pk, pieces(data, 100_000), "text/plain") == info(data)
    chunks = backend.blobs.open(pk)
    assert chunks is not None
    read = list(chunks)
    assert b"".join(read) == data
    assert all(0 < len(chunk) <= MB for chunk in read)


def test_chunks_may_be_empty_or_huge(backend: Backend, pk: str) -> None:
    data = b"x" * (2 * PART_BYTES + 5)
    assert backend.blobs.put_stream(pk, iter([b"", data, b"", b"y"]), "a/b") == info(data + b"y")
    assert backend.blobs.get(pk) == data + b"y"


class Broken(Exception):
    """What an iterator raises."""


def failing(chunks: int, error: BaseException) -> Iterator[bytes]:
    for _ in range(chunks):
        yield b"x" * MB
    raise error


@pytest.mark.parametrize("error", [Broken(), KeyboardInterrupt(), ValueError("short body")])
@pytest.mark.parametrize("chunks", [0, 3, 20])
def test_an_iterator_that_raises_leaves_nothing(backend: Backend, pk: str, chunks: int, error: BaseException) -> None:
    with pytest.raises(type(error)):
        backend.blobs.put_stream(pk, failing(chunks, error), "a/b")
    assert backend.blobs.get(pk) is None
    if backend.clients is not None:
        assert backend.clients.s3.list_multipart_uploads(Bucket=BUCKET).get("Uploads", []) == []


def test_an_iterator_that_raises_leaves_what_was_there(backend: Backend, pk: str) -> None:
    backend.blobs.put(pk, b"before")
    with pytest.raises(Broken):
        backend.blobs.put_stream(pk, failing(20, Broken()), "a/b")
    assert backend.blobs.get(pk) == b"before"


def test_thirty_megabytes_pass_through_little_memory(roto_clients: Clients, pk: str) -> None:
    blobs = S3Blobs(roto_clients.s3, BUCKET)
    blobs.put(pk, b"warm")
    tracemalloc.start()
    try:
        assert blobs.put_stream(pk, (b"x" * MB for _ in range(30)), "a/b").size == 30 * MB
        written = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        chunks = blobs.open(pk)
        assert chunks is not None
        assert sum(len(chunk) for chunk in chunks) == 30 * MB
        read = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert written < 3 * PART_BYTES
    assert read < 6 * MB


def test_the_digest_is_stored_beside_the_content(roto_clients: Clients, pk: str) -> None:
    blobs, s3 = S3Blobs(roto_clients.s3, BUCKET), roto_clients.s3
    blobs.put(pk, b"small", "text/plain")
    head = s3.head_object(Bucket=BUCKET, Key=pk)
    assert (head["ContentType"], head["Metadata"]) == ("text/plain", {"sha256": info(b"small").sha256})
    large = blobs.put_stream(pk, iter([b"x" * PART_BYTES, b"y"]), "text/csv")
    assert s3.head_object(Bucket=BUCKET, Key=pk)["ContentType"] == "text/csv"
    assert s3.get_object_tagging(Bucket=BUCKET, Key=pk)["TagSet"] == [{"Key": "sha256", "Value": large.sha256}]


def test_a_stream_that_nobody_reads_to_its_end_frees_its_connection(roto: RotoServer, pk: str) -> None:
    clients = Clients(replace(roto.settings, pool=1))
    blobs = S3Blobs(clients.s3, BUCKET)
    blobs.put_stream(pk, iter([b"x" * PART_BYTES, b"y"]), "a/b")
    for _ in range(3):
        chunks = blobs.open(pk)
        assert chunks is not None
        assert len(next(chunks)) == MB
        del chunks
    clients.close()


def test_nobody_listens(roto: RotoServer) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        clients = Clients(replace(roto.settings, endpoint_url=f"http://127.0.0.1:{free.getsockname()[1]}"))
        blobs = S3Blobs(clients.s3, BUCKET)
        for use in (lambda: blobs.put("a", b"x"), lambda: blobs.get("a"), lambda: blobs.delete("a")):
            with pytest.raises(StoreUnavailable):
                use()
        clients.close()
