"""Moves files to and from the platform, whatever their size: for the worker, and for the operator's command line.

Small files go in one request. Larger ones, and those that the API has no room for (413), go in parts to wherever the
API says (docs/api-files.md). Every step but the single request is safe to repeat, and repeated with growing pauses.
What was moved is compared by its SHA-256. Addresses outside of the API are never shown the credential.
"""

import contextlib
import hashlib
import mimetypes
import random
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from urllib.parse import quote, urljoin

import httpx

from mango_worker.api import describe, raise_for
from mango_worker.errors import ApiRefused, ApiUnavailable, CredentialError, WorkerError
from mango_worker.text import one_line

__all__ = ["Transfer", "TransferFailed", "WorkerError", "one_line"]

Json = dict[str, Any]
Progress = Callable[[int], None]
"""Told how many more bytes were moved; fewer than none when some must be moved again."""
Answer = TypeVar("Answer")

SMALL = 4 * 1024 * 1024
"""Bytes that are tried in one request."""
CHUNK = 256 * 1024
ATTEMPTS = 8
LONGEST_PAUSE = 20.0
TIMEOUT = httpx.Timeout(60.0, connect=15.0)
CHECKING = httpx.Timeout(300.0, connect=15.0)
"""For the API to read the whole content again."""


class TransferFailed(WorkerError):
    """A file could not be moved, or is not what it should be."""


class Transfer:
    """Files of one workspace, by one base URL and one bearer token."""

    def __init__(self, base_url: str, token: str, *, pause: Callable[[float], None] = time.sleep) -> None:
        if not token or not token.isascii() or not token.isprintable():
            raise CredentialError("the API key is empty or holds characters that no key has")
        self._base_url = base_url.rstrip("/")
        self._pause = pause
        headers = {"Authorization": f"Bearer {token}", "User-Agent": "mango-transfer"}
        self._api = httpx.Client(headers=headers, timeout=TIMEOUT)
        self._elsewhere = httpx.Client(headers={"User-Agent": "mango-transfer"}, timeout=TIMEOUT)

    def close(self) -> None:
        """Ends the connections."""
        self._api.close()
        self._elsewhere.close()

    def retrieve(self, file_id: str) -> Json:
        """What is known about a file."""
        return self._repeat(lambda: self._json("GET", f"/v1/files/{quote(file_id, safe='')}"))

    def delete(self, file_id: str) -> Json:
        """Removes a file. Raises ApiRefused (404) if there is none."""
        return self._repeat(lambda: self._json("DELETE", f"/v1/files/{quote(file_id, safe='')}"))

    def list(self) -> Iterator[Json]:
        """All files, newest first."""
        page = None
        while True:
            query = "limit=100" + (f"&page={quote(page, safe='')}" if page else "")
            answer = self._repeat(lambda query=query: self._json("GET", f"/v1/files?{query}"))  # type: ignore[misc]
            yield from answer["data"]
            page = answer["next_page"]
            if page is None:
                return

    def upload(
        self,
        path: Path,
        *,
        mime_type: str | None = None,
        expires_in_seconds: int | None = None,
        progress: Progress = lambda _: None,
    ) -> Json:
        """Stores a file under its name; the file as the API knows it.

        Raises:
            TransferFailed: it changes while it is read, or what arrived is something else.
            ApiRefused, ApiUnavailable: the API will not, or does not answer.
            OSError: it cannot be read.
        """
        kind = mime_type or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        with path.open("rb") as content:
            digest, size = _digest(content)
            made = self._at_once(path.name, content, size, kind, expires_in_seconds, progress)
            if made is None:
                announced: Json = {"filename": path.name, "size_bytes": size, "sha256": digest, "mime_type": kind}
                if expires_in_seconds is not None:
                    announced["expires_in_seconds"] = expires_in_seconds
                made = self._in_parts(announced, content, progress)
        if made["checksum_sha256"] != digest:
            with contextlib.suppress(WorkerError):
                self.delete(made["id"])
            raise TransferFailed(f"{path.name} changed while it was read, or on its way; what arrived was removed")
        return made

    def _at_once(
        self, name: str, content: BinaryIO, size: int, kind: str, expires: int | None, progress: Progress
    ) -> Json | None:
        """By one request, which cannot be repeated when its answer is lost; None if it has no room for that much."""
        if size > SMALL:
            return None
        content.seek(0)
        files = {"file": (name, content.read(), kind)}
        data = {} if expires is None else {"expires_in_seconds": str(expires)}
        try:
            made = self._json("POST", "/v1/files", files=files, data=data)
        except ApiRefused as error:
            if error.status == 413 and size:
                return None
            raise
        except ApiUnavailable as error:
            raise TransferFailed(f"whether {name} was stored is unknown, see the list of files: {error}") from None
        progress(size)
        return made

    def _in_parts(self, announced: Json, content: BinaryIO, progress: Progress) -> Json:
        upload = self._repeat(lambda: self._json("POST", "/v1/files/uploads", json=announced))
        path = f"/v1/files/uploads/{upload['id']}"
        finished = False
        try:
            content.seek(0)
            sent = [self._part(path, part, content, progress) for part in upload["parts"]]
            made = self._repeat(lambda: self._json("POST", f"{path}/complete", json={"parts": sent}, timeout=CHECKING))
            finished = True
            return made
        finally:
            if not finished:
                # Also when the user ends it; otherwise it is removed by the server within a day.
                with contextlib.suppress(WorkerError):
                    self._json("DELETE", path)

    def _part(self, path: str, part: Json, content: BinaryIO, progress: Progress) -> Json:
        number, size, url = part["part_number"], part["size_bytes"], part["url"]
        data = content.read(size)
        if len(data) != size:
            raise TransferFailed("the file became shorter while it was read")

        def send() -> str:
            nonlocal url
            try:
                return self._put(url, data)
            except ApiRefused as error:
                if error.status != 403 or url.startswith("/"):
                    raise
                # Presigned URLs are good for a while only.
                url = next(one["url"] for one in self._json("GET", path)["parts"] if one["part_number"] == number)
                raise ApiUnavailable(f"the URL of part {number} is not good any more") from None

        tag = self._repeat(send)
        progress(size)
        return {"part_number": number, "etag": tag}

    def _put(self, url: str, data: bytes) -> str:
        here = url.startswith("/")
        client = self._api if here else self._elsewhere
        try:
            answer = client.put(self._base_url + url if here else url, content=data)
        except httpx.HTTPError as error:
            raise ApiUnavailable(describe(error)) from None
        if not answer.is_success:
            raise_for(answer)
        tag = answer.headers.get("etag")
        if not tag:
            raise TransferFailed("the answer to a part has no entity tag")
        return str(tag)

    def download(self, file_id: str, target: Path, *, progress: Progress = lambda _: None) -> Json:
        """Writes a file's content to `target`, which appears, or is replaced, when all of it is there and right.

        Raises:
            TransferFailed: what arrived is not what the API announced.
            ApiRefused, ApiUnavailable: the API will not, or does not answer.
            OSError: it cannot be written.
        """
        known = self.retrieve(file_id)
        beside = target.with_name(f".{target.name[:200]}.{secrets.token_hex(4)}.part")
        try:
            with beside.open("x+b") as partial:
                self._repeat(lambda: self._fetch(known, partial, progress))
                partial.flush()
                digest, size = _digest(partial)
            if (digest, size) != (known["checksum_sha256"], known["size_bytes"]):
                raise TransferFailed(f"what arrived of {file_id} has another SHA-256 than the API announced")
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
        return known

    def _fetch(self, known: Json, partial: BinaryIO, progress: Progress) -> None:
        """What is missing of the content; where nobody has ranges, all of it."""
        have = partial.seek(0, 2)
        headers = {"Range": f"bytes={have}-"} if have else {}
        try:
            with self._content(f"{self._base_url}/v1/files/{known['id']}/content", headers) as answer:
                if have and answer.status_code != 206:
                    progress(-have)
                    partial.seek(0)
                    partial.truncate()
                for chunk in answer.iter_raw(CHUNK):
                    partial.write(chunk)
                    progress(len(chunk))
        except httpx.HTTPError as error:
            raise ApiUnavailable(describe(error)) from None
        if partial.tell() < known["size_bytes"]:
            raise ApiUnavailable("the content ended too early")

    @contextlib.contextmanager
    def _content(self, url: str, headers: dict[str, str]) -> Iterator[httpx.Response]:
        """Follows one redirect, without the credential."""
        plain = {**headers, "Accept-Encoding": "identity"}
        with self._api.stream("GET", url, headers=plain, follow_redirects=False) as answer:
            if not answer.is_redirect:
                yield _good(answer)
                return
            location = urljoin(url, answer.headers["location"])
        with self._elsewhere.stream("GET", location, headers=plain) as answer:
            if answer.status_code == 403:
                answer.read()
                raise ApiUnavailable("the URL of the content is not good any more")
            yield _good(answer)

    def _json(self, method: str, path: str, **options: Any) -> Json:
        try:
            answer = self._api.request(method, self._base_url + path, **options)
        except httpx.HTTPError as error:
            raise ApiUnavailable(describe(error)) from None
        if not answer.is_success:
            raise_for(answer)
        try:
            shown: Json = answer.json()
        except ValueError:
            raise ApiUnavailable("the API answered with something that is not JSON") from None
        return shown

    def _repeat(self, act: Callable[[], Answer]) -> Answer:
        """Again after what may pass, with pauses that grow and are never the same."""
        for attempt in range(1, ATTEMPTS):
            try:
                return act()
            except ApiUnavailable as error:
                growing = min(0.25 * 2**attempt, LONGEST_PAUSE) * random.uniform(0.5, 1.0)  # noqa: S311 (jitter)
                self._pause(max(growing, error.retry_after))
        return act()


def _good(answer: httpx.Response) -> httpx.Response:
    if not answer.is_success:
        answer.read()
        raise_for(answer)
    return answer


def _digest(content: BinaryIO) -> tuple[str, int]:
    """SHA-256 and size of all of it."""
    content.seek(0)
    digest, size = hashlib.sha256(), 0
    while chunk := content.read(CHUNK):
        digest.update(chunk)
        size += len(chunk)
    return digest.hexdigest(), size
