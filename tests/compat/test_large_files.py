"""Files beyond what a request carries, as on AWS: presigned URLs of a real S3 server, the stock client, and our own.

The S3 server is moto's, which takes presigned URLs and honours what they say, but does not check their signature.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from anthropic import Anthropic
from moto.server import ThreadedMotoServer
from typer.testing import CliRunner

from mango.api.app import create_api
from mango.api.asgi import Application, Message, Receive, Scope, Send
from mango.aws.blobs import S3Blobs
from mango.aws.clients import AwsSettings, Clients
from mango.memory import MemoryBlobs
from mango.ports import Blobs
from mango_local.cli import app as mango
from mango_worker.errors import ApiRefused, ApiUnavailable
from mango_worker.transfer import Transfer, TransferFailed
from tests.unit.api.desk import WORKSPACE_KEY, Desk
from tests.unit.api.served import served

MIB = 1024 * 1024
CONTENT = os.urandom(20 * MIB + 7)
KEYS = ("authorization", "x-api-key")


class Seen:
    """A WSGI application in front of moto that remembers what it was asked, and may refuse."""

    def __init__(self, inner: Any) -> None:
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.refuse: Callable[[str, str], int | None] = lambda method, query: None
        self._inner = inner

    def __call__(self, environ: dict[str, Any], start: Any) -> Any:
        headers = {k[5:].lower().replace("_", "-"): v for k, v in environ.items() if k.startswith("HTTP_")}
        if "X-Amz-Signature" in environ["QUERY_STRING"]:
            self.requests.append((environ["REQUEST_METHOD"], headers))
            status = self.refuse(environ["REQUEST_METHOD"], environ["QUERY_STRING"])
            if status is not None:
                environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
                start(f"{status} Refused", [("content-length", "0")])
                return [b""]
        return self._inner(environ, start)


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[Clients, Seen]]:
    moto = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    moto.start()
    seen = Seen(moto._server.app)  # type: ignore[union-attr]
    moto._server.app = seen  # type: ignore[union-attr]
    host, port = moto.get_host_and_port()
    clients = Clients(AwsSettings(endpoint_url=f"http://{host}:{port}", access_key_id="id", secret_access_key="secret"))
    S3Blobs(clients.s3, "large").create_bucket("us-east-1")
    yield clients, seen
    clients.close()
    moto.stop()


@pytest.fixture
def s3(server: tuple[Clients, Seen]) -> tuple[Clients, Seen]:
    server[1].requests.clear()
    server[1].refuse = lambda method, query: None
    return server


def on(desk: Desk, blobs: Blobs, carried: int | None) -> None:
    desk.world.ctx = desk.ctx = replace(desk.ctx, blobs=blobs, limits=replace(desk.ctx.limits, carried_bytes=carried))
    desk.api = create_api(desk.ctx)


@pytest.fixture(params=["aws", "embedded"])
def deployment(request: pytest.FixtureRequest, desk: Desk) -> Iterator[tuple[str, Seen]]:
    """Base URL of an API that hands out presigned URLs and carries a megabyte, and of one that takes everything."""
    clients, seen = request.getfixturevalue("s3")
    if request.param == "aws":
        on(desk, S3Blobs(clients.s3, "large"), MIB)
    with served(desk) as url:
        yield url, seen


@pytest.fixture
def transfer(deployment: tuple[str, Seen]) -> Iterator[Transfer]:
    made = Transfer(deployment[0], WORKSPACE_KEY, pause=lambda _: None)
    yield made
    made.close()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "größe.bin"
    path.write_bytes(CONTENT)
    return path


@pytest.mark.parametrize("size", [0, 1, MIB, MIB + 1, 5 * MIB, len(CONTENT)])
def test_our_client_moves_any_size(transfer: Transfer, tmp_path: Path, size: int, deployment: tuple[str, Seen]) -> None:
    source, target = tmp_path / "a.txt", tmp_path / "b"
    source.write_bytes(CONTENT[:size])
    moved: list[int] = []
    made = transfer.upload(source, progress=moved.append)
    assert (made["size_bytes"], made["mime_type"], sum(moved)) == (size, "text/plain", size)
    assert made["checksum_sha256"] == hashlib.sha256(CONTENT[:size]).hexdigest()
    transfer.download(made["id"], target, progress=moved.append)
    assert target.read_bytes() == CONTENT[:size]
    assert sum(moved) == 2 * size
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "b"]
    assert [one["id"] for one in transfer.list()] == [made["id"]]
    transfer.delete(made["id"])
    assert list(transfer.list()) == []
    assert not any(key in headers for _, headers in deployment[1].requests for key in KEYS)


@pytest.mark.parametrize("authority", ["api_key", "auth_token"])
def test_the_stock_client_follows_to_the_store(
    deployment: tuple[str, Seen], transfer: Transfer, source: Path, authority: str
) -> None:
    url, seen = deployment
    made = transfer.upload(source)
    seen.requests.clear()
    given: Any = {"api_key": None, "auth_token": None, authority: WORKSPACE_KEY}
    with Anthropic(base_url=url, max_retries=0, _strict_response_validation=True, **given) as client:
        answer = client.beta.files.download(made["id"])
        assert answer.read() == CONTENT
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["content-disposition"].endswith("filename*=UTF-8''gr%C3%B6%C3%9Fe.bin")
    assert all(method == "GET" for method, _ in seen.requests)
    assert not any(key in headers for _, headers in seen.requests for key in KEYS)


@pytest.mark.parametrize("header", KEYS)
def test_what_httpx_sends_on(deployment: tuple[str, Seen], transfer: Transfer, source: Path, header: str) -> None:
    """As docs/api-files.md says: a bearer token stays here, a header that it knows nothing of goes along."""
    url, seen = deployment
    made = transfer.upload(source)
    key = f"Bearer {WORKSPACE_KEY}" if header == "authorization" else WORKSPACE_KEY
    seen.requests.clear()
    answer = httpx.get(f"{url}/v1/files/{made['id']}/content", headers={header: key}, follow_redirects=True)
    assert answer.content == CONTENT
    assert all((header in headers) == (header == "x-api-key") for _, headers in seen.requests)


def test_refusals_of_the_store_are_repeated_and_stale_urls_renewed(
    deployment: tuple[str, Seen], transfer: Transfer, source: Path, tmp_path: Path
) -> None:
    _, seen = deployment
    refusals = {("PUT", n): status for n, status in enumerate([503, 403, 500], 1)} | {("GET", 0): 403}
    lock = threading.Lock()

    def refuse(method: str, query: str) -> int | None:
        number = next((n for n in (1, 2, 3) if f"partNumber={n}&" in query), 0)
        with lock:
            return refusals.pop((method, number), None)

    seen.refuse = refuse
    made = transfer.upload(source)
    transfer.download(made["id"], tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == CONTENT
    assert not refusals or not seen.requests


class Flaky:
    """Around an API: the first of each request is refused, or done without an answer."""

    def __init__(self, inner: Application, *, after: bool) -> None:
        self._inner = inner
        self._after = after
        self.met: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        what = f"{scope.get('method')} {scope.get('path')}"
        if scope["type"] != "http" or what in self.met or what == "POST /v1/files":
            await self._inner(scope, receive, send)
            return
        self.met.add(what)

        async def nowhere(message: Message) -> None:
            pass

        if self._after:
            await self._inner(scope, receive, nowhere)
        else:
            while (await receive()).get("more_body"):
                pass
        await send({"type": "http.response.start", "status": 503, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})


@pytest.mark.parametrize("after", [False, True])
def test_every_request_fails_once(desk: Desk, source: Path, tmp_path: Path, after: bool) -> None:
    with served(desk, wrap=lambda app: Flaky(app, after=after)) as url:
        transfer = Transfer(url, WORKSPACE_KEY, pause=lambda _: None)
        made = transfer.upload(source)
        transfer.download(made["id"], tmp_path / "b")
        assert (tmp_path / "b").read_bytes() == CONTENT
        assert [one["id"] for one in transfer.list()] == [made["id"]]
        transfer.close()


def test_downloads_go_on_where_they_were_cut(desk: Desk, tmp_path: Path, s3: tuple[Clients, Seen]) -> None:
    """Where the store has ranges; the API itself begins anew."""
    clients, seen = s3
    on(desk, S3Blobs(clients.s3, "large"), MIB)
    with served(desk) as url:
        transfer = Transfer(url, WORKSPACE_KEY, pause=lambda _: None)
        (tmp_path / "a").write_bytes(CONTENT)
        made = transfer.upload(tmp_path / "a")
        seen.requests.clear()
        moved: list[int] = []

        def cut(count: int) -> None:
            before = sum(moved)
            moved.append(count)
            if before < 3 * MIB <= sum(moved):
                raise httpx.ReadError("cut")

        transfer.download(made["id"], tmp_path / "b", progress=cut)
        assert (tmp_path / "b").read_bytes() == CONTENT
        ranges = [headers.get("range") for _, headers in seen.requests]
        assert ranges[0] is None
        assert ranges[1] is not None and ranges[1].startswith("bytes=3")
        transfer.close()


class Lying(MemoryBlobs):
    """Answers other bytes than it took."""

    def open(self, key: str) -> Iterator[bytes] | None:
        chunks = super().open(key)
        return None if chunks is None else (b"?" + chunk[1:] for chunk in chunks)


def test_what_arrives_wrong_is_not_kept(desk: Desk, tmp_path: Path) -> None:
    on(desk, Lying(), None)
    source, target = tmp_path / "a", tmp_path / "b"
    source.write_bytes(b"content")
    target.write_bytes(b"before")
    with served(desk) as url:
        transfer = Transfer(url, WORKSPACE_KEY, pause=lambda _: None)
        made = transfer.upload(source)
        with pytest.raises(TransferFailed, match="another SHA-256"):
            transfer.download(made["id"], target)
        assert target.read_bytes() == b"before"
        source.write_bytes(CONTENT)
        with pytest.raises(ApiRefused, match="has SHA-256"):
            transfer.upload(source)
        assert [one["id"] for one in transfer.list()] == [made["id"]]
        transfer.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_a_lost_answer_of_the_single_request_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    transfer = Transfer("http://127.0.0.1:1", WORKSPACE_KEY, pause=lambda _: None)
    with pytest.raises(TransferFailed, match="whether a was stored is unknown"):
        transfer.upload(tmp_path / "a")
    with pytest.raises(ApiUnavailable):
        transfer.retrieve("file_x")
    transfer.close()


def test_the_command_line(
    deployment: tuple[str, Seen], source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()

    def run(*arguments: str, code: int = 0) -> str:
        result = runner.invoke(mango, ["files", *arguments])
        assert result.exit_code == code, result.output
        return result.output

    monkeypatch.delenv("MANGO_API_KEY", raising=False)
    assert "MANGO_API_KEY is not set" in run("list", code=1)
    monkeypatch.setenv("MANGO_API_KEY", WORKSPACE_KEY)
    monkeypatch.setenv("MANGO_BASE_URL", deployment[0])
    file_id = run("upload", str(source)).strip()
    assert run("list").split()[:2] == [file_id, str(len(CONTENT))]
    assert "is there already" in run("download", file_id, code=1)
    assert run("download", file_id, "--force").strip() == source.name
    (tmp_path / "out").mkdir()
    run("download", file_id, "-o", "out")
    assert (tmp_path / "out" / source.name).read_bytes() == CONTENT
    assert run("delete", file_id).strip() == file_id
    assert "was not found" in run("download", file_id, code=1)
    assert run("list") == ""
