"""Blobs on S3 or what stands in for it."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from mango.aws.blob_parts import S3Parts, answering
from mango.aws.failures import error_code
from mango.ports import BlobInfo

_log = logging.getLogger(__name__)
_CHUNK = 1024 * 1024
PART_BYTES = 8 * 1024 * 1024
"""Size of an upload's parts, all but the last; what an upload holds in memory is about twice this."""
_OURS_ALREADY = ("BucketAlreadyOwnedByYou", "BucketAlreadyExists")


class S3Blobs(S3Parts):
    """A `Blobs` in a bucket. Raises `StoreUnavailable` when S3 cannot answer.

    `presigns` tells whether clients may reach the bucket by presigned URLs.

    The SHA-256 is stored beside the content for whoever checks a bucket: as metadata `sha256` of a blob stored by
    one request, as tag `sha256` of one stored in parts, whose metadata S3 takes only before the content.
    """

    def create_bucket(self, region: str) -> None:
        """Creates the bucket if it is missing."""
        place: Any = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
        with answering():
            try:
                self._client.create_bucket(Bucket=self._bucket, **place)
            except ClientError as error:
                if error_code(error) not in _OURS_ALREADY:
                    raise
            # Raises if the bucket of that name is somebody else's.
            self._client.head_bucket(Bucket=self._bucket)

    def put(self, key: str, data: bytes, content_type: str = "application/octet-stream") -> BlobInfo:
        """Stores the data by one request."""
        digest = hashlib.sha256(data).hexdigest()
        with answering():
            self._client.put_object(
                Bucket=self._bucket, Key=key, Body=data, ContentType=content_type, Metadata={"sha256": digest}
            )
        return BlobInfo(len(data), digest)

    def put_stream(self, key: str, chunks: Iterator[bytes], content_type: str) -> BlobInfo:
        """Stores what the iterator yields, in parts if it is long; nothing is kept when it raises."""
        parts = _parts(chunks)
        first = next(parts, b"")
        if len(first) < PART_BYTES:
            return self.put(key, first, content_type)
        held = [first]
        del first  # only `held` has it, and gives it away: a part that is uploaded must not stay in memory
        with answering():
            upload = self._client.create_multipart_upload(Bucket=self._bucket, Key=key, ContentType=content_type)
        upload_id = upload["UploadId"]
        completed = False
        try:
            info = self._upload(key, upload_id, _after(held, parts))
            completed = True
        finally:
            # Also when the iterator raises, whatever it raises: parts of an open upload are kept, and paid for.
            if not completed:
                self.abort(key, upload_id)
        return info

    def _upload(self, key: str, upload_id: str, parts: Iterator[bytes]) -> BlobInfo:
        target: Any = {"Bucket": self._bucket, "Key": key, "UploadId": upload_id}
        digest, size = hashlib.sha256(), 0
        done: list[Any] = []
        for part in parts:
            digest.update(part)
            size += len(part)
            number = len(done) + 1
            with answering():
                answer = self._client.upload_part(**target, PartNumber=number, Body=part)
            done.append({"PartNumber": number, "ETag": answer["ETag"]})
            del part  # before the next one is put together
        with answering():
            self._client.complete_multipart_upload(**target, MultipartUpload={"Parts": done})
        self._tag(key, digest.hexdigest())
        return BlobInfo(size, digest.hexdigest())

    def _tag(self, key: str, digest: str) -> None:
        tag: Any = {"TagSet": [{"Key": "sha256", "Value": digest}]}
        try:
            self._client.put_object_tagging(Bucket=self._bucket, Key=key, Tagging=tag)
        except (ClientError, BotoCoreError) as error:
            # The content is complete, and its digest is the caller's to keep.
            _log.warning("no digest beside blob %s: %s", key, error)

    def get(self, key: str) -> bytes | None:
        """The whole content."""
        chunks = self.open(key)
        return None if chunks is None else b"".join(chunks)

    def open(self, key: str) -> Iterator[bytes] | None:
        """The content in chunks of at most 1 MiB; the request is made at once, the content read as it is taken."""
        with answering():
            try:
                body = self._client.get_object(Bucket=self._bucket, Key=key)["Body"]
            except ClientError as error:
                if error_code(error) == "NoSuchKey":
                    return None
                raise
        return _read(body)

    def delete(self, key: str) -> None:
        """Forgets the blob; no error when it is missing."""
        with answering():
            self._client.delete_object(Bucket=self._bucket, Key=key)


def _read(body: Any) -> Iterator[bytes]:
    with closing(body), answering():
        yield from body.iter_chunks(_CHUNK)


def _parts(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes in parts of exactly `PART_BYTES`, but for the last."""
    buffer = bytearray()
    for chunk in chunks:
        buffer += chunk
        while len(buffer) >= PART_BYTES:
            yield bytes(memoryview(buffer)[:PART_BYTES])
            del buffer[:PART_BYTES]
    if buffer:
        yield bytes(buffer)


def _after(held: list[bytes], parts: Iterator[bytes]) -> Iterator[bytes]:
    yield held.pop()
    yield from parts
