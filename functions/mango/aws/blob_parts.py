"""Blobs that clients bring and fetch by themselves: multipart uploads and presigned URLs of S3."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from mango.aws.failures import error_code, error_message
from mango.domain.transaction import StoreUnavailable
from mango.ports import PartsRefused

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_NO_UPLOAD = "NoSuchUpload"
_WRONG_PARTS = ("InvalidPart", "InvalidPartOrder", "EntityTooSmall")


class S3Parts:
    """The half of `S3Blobs` that works on uploads in parts. Raises `StoreUnavailable` when S3 cannot answer."""

    def __init__(self, client: S3Client, bucket: str, *, presigns: bool = True) -> None:
        self._client = client
        self._bucket = bucket
        self._presigns = presigns

    def size(self, key: str) -> int | None:
        """Bytes of a blob, or None when there is no such blob."""
        with answering():
            try:
                return self._client.head_object(Bucket=self._bucket, Key=key)["ContentLength"]
            except ClientError as error:
                if error_code(error) in ("404", "NoSuchKey", "NotFound"):
                    return None
                raise

    def presign_get(self, key: str, seconds: int, content_type: str, disposition: str) -> str | None:
        """Signed here, without asking S3."""
        given = {"Key": key, "ResponseContentType": content_type, "ResponseContentDisposition": disposition}
        return self._presign("get_object", given, seconds)

    def presign_part(self, key: str, handle: str, number: int, size: int, seconds: int) -> str | None:
        """Signed here, without asking S3. The size is part of what is signed."""
        given = {"Key": key, "UploadId": handle, "PartNumber": number, "ContentLength": size}
        return self._presign("upload_part", given, seconds)

    def _presign(self, operation: str, given: dict[str, Any], seconds: int) -> str | None:
        if not self._presigns:
            return None
        with answering():  # credentials may be missing
            return self._client.generate_presigned_url(operation, {"Bucket": self._bucket, **given}, ExpiresIn=seconds)

    def begin_parts(self, key: str, content_type: str, sha256: str) -> str:
        """The handle is S3's id of the multipart upload."""
        with answering():
            return self._client.create_multipart_upload(
                Bucket=self._bucket, Key=key, ContentType=content_type, Metadata={"sha256": sha256}
            )["UploadId"]

    def put_part(self, key: str, handle: str, number: int, data: bytes) -> str:
        """By one request."""
        with answering(), _refusing(_NO_UPLOAD):
            return self._client.upload_part(
                Bucket=self._bucket, Key=key, UploadId=handle, PartNumber=number, Body=data
            )["ETag"]

    def complete_parts(self, key: str, handle: str, tags: Sequence[str]) -> None:
        """Whether it was completed before shows by the blob, whose key is nobody else's."""
        parts: Any = {"Parts": [{"PartNumber": n, "ETag": tag} for n, tag in enumerate(tags, 1)]}
        with answering(), _refusing(_NO_UPLOAD, *_WRONG_PARTS):
            try:
                self._client.complete_multipart_upload(
                    Bucket=self._bucket, Key=key, UploadId=handle, MultipartUpload=parts
                )
            except ClientError as error:
                if error_code(error) != _NO_UPLOAD or self.size(key) is None:
                    raise

    def discard(self, key: str) -> None:
        """Aborts every multipart upload of the key first, so that none of them can be completed after the deletion."""
        for handle in self._uploads(key):
            self.abort(key, handle)
        with answering():
            self._client.delete_object(Bucket=self._bucket, Key=key)

    def _uploads(self, key: str) -> list[str]:
        found: list[str] = []
        markers: dict[str, Any] = {}
        while True:
            with answering():
                page = self._client.list_multipart_uploads(Bucket=self._bucket, Prefix=key, **markers)
            # Keys that only begin like this one are somebody else's.
            found += [one["UploadId"] for one in page.get("Uploads", []) if one["Key"] == key]
            if not page.get("IsTruncated"):
                return found
            markers = {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page["NextUploadIdMarker"]}

    def abort(self, key: str, handle: str) -> None:
        """Forgets the parts of one upload; no error when it is over."""
        with answering():
            try:
                self._client.abort_multipart_upload(Bucket=self._bucket, Key=key, UploadId=handle)
            except ClientError as error:
                if error_code(error) != _NO_UPLOAD:
                    raise


@contextmanager
def answering() -> Iterator[None]:
    """Raises `StoreUnavailable` for whatever S3 and the way to it raise."""
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise StoreUnavailable(str(error)) from error


@contextmanager
def _refusing(*codes: str) -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        if error_code(error) not in codes:
            raise
        raise PartsRefused(error_message(error)) from None
