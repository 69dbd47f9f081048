"""HTTP client of the platform's API: JSON requests and event streams, errors sorted by what one may do next."""

import contextlib
import json
import socket
from collections.abc import Iterator, Mapping
from typing import Any

import httpx

from mango_worker.errors import ApiRefused, ApiUnavailable, CredentialError
from mango_worker.sse import Message, messages
from mango_worker.text import one_line

Json = dict[str, Any]
_TRANSIENT = frozenset({408, 429})
_MAX_RETRY_AFTER = 30.0


class Api:
    """One base URL and one bearer token. Safe to use from several threads."""

    def __init__(self, base_url: str, token: str, worker_id: str | None = None) -> None:
        if not token or not token.isascii() or not token.isprintable():
            raise CredentialError("the API key is empty or holds characters that no key has")
        self.base_url = base_url.rstrip("/")
        headers = {"Authorization": f"Bearer {token}", "User-Agent": "mango-worker", "Accept": "application/json"}
        if worker_id:
            headers["Anthropic-Worker-ID"] = worker_id
        self._client = httpx.Client(base_url=self.base_url, headers=headers, timeout=15.0)

    def close(self) -> None:
        self._client.close()

    def get(self, path: str, params: Mapping[str, Any] | None = None, timeout: float = 15.0) -> Any:
        """GET `path`; the decoded JSON. `timeout` in seconds for each network step."""
        return self._call("GET", path, params, None, timeout)

    def post(
        self, path: str, body: Json | None = None, params: Mapping[str, Any] | None = None, timeout: float = 15.0
    ) -> Any:
        """POST `path`; the decoded JSON. Raises ApiRefused or ApiUnavailable."""
        return self._call("POST", path, params, body, timeout)

    @contextlib.contextmanager
    def stream(self, path: str, read_timeout: float = 60.0) -> Iterator["Stream"]:
        """Open a server-sent event stream; entered once the response headers have arrived."""
        timeout = httpx.Timeout(15.0, read=read_timeout)
        try:
            with self._client.stream("GET", path, headers={"Accept": "text/event-stream"}, timeout=timeout) as answer:
                if answer.status_code != 200:
                    answer.read()
                    raise_for(answer)
                yield Stream(answer)
        except httpx.HTTPError as error:
            raise ApiUnavailable(describe(error)) from None

    def _call(self, method: str, path: str, params: Mapping[str, Any] | None, body: Json | None, timeout: float) -> Any:
        # An empty body with a JSON content type is what the protocol expects of a POST without arguments.
        content = b"" if body is None else json.dumps(body, ensure_ascii=False).encode("utf-8")
        headers = {"Content-Type": "application/json"} if method == "POST" else {}
        try:
            answer = self._client.request(
                method, path, params=params, content=content or None, headers=headers, timeout=timeout
            )
        except httpx.HTTPError as error:
            raise ApiUnavailable(describe(error)) from None
        if not answer.is_success:
            raise_for(answer)
        try:
            return answer.json()
        except ValueError:
            raise ApiUnavailable("the API answered with something that is not JSON") from None


class Stream:
    """An open event stream."""

    def __init__(self, answer: httpx.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[Message]:
        return messages(self._answer.iter_bytes())

    def abort(self) -> None:
        """Wake a thread that is blocked reading this stream; it then sees the stream end. Any thread may call it."""
        network = self._answer.extensions.get("network_stream")
        raw = network.get_extra_info("socket") if network is not None else None
        if isinstance(raw, socket.socket):
            with contextlib.suppress(OSError):
                raw.shutdown(socket.SHUT_RDWR)


def describe(error: httpx.HTTPError) -> str:
    """One line about a failed exchange."""
    return one_line(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__, 200)


def raise_for(answer: httpx.Response) -> None:
    """Raises ApiRefused or ApiUnavailable for an answer that is no success; its body must have been read."""
    status = answer.status_code
    message = _error_message(answer)
    hint = answer.headers.get("x-should-retry")
    transient = status in _TRANSIENT or status >= 500 or (status == 409 and hint == "true")
    if transient and hint != "false":
        raise ApiUnavailable(f"{message} (HTTP {status})", _retry_after(answer))
    raise ApiRefused(status, message)


def _retry_after(answer: httpx.Response) -> float:
    try:
        seconds = float(answer.headers.get("retry-after", "0"))
    except ValueError:
        return 0.0
    return min(max(0.0, seconds), _MAX_RETRY_AFTER)


def _error_message(answer: httpx.Response) -> str:
    try:
        message = answer.json()["error"]["message"]
    except (ValueError, KeyError, TypeError):
        message = answer.reason_phrase or "no reason given"
    return one_line(str(message), 300)
