"""What the product needs from the world, as protocols. Adapters are chosen by the composition roots only."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from mango.domain.transaction import Item, Key, Transaction

Micros = int
"""A point in time: microseconds since 1970-01-01T00:00:00Z. Differences in microseconds too."""


class Clock(Protocol):
    """Wall clock of this process."""

    def now(self) -> Micros: ...


class Ids(Protocol):
    """Source of identifiers and secrets."""

    def new(self, prefix: str) -> str:
        """A fresh id, `<prefix>_<24 letters and digits>`, ordered by time of creation where possible."""
        ...

    def secret(self) -> str:
        """43 URL-safe characters carrying 256 random bits."""
        ...


class Page(NamedTuple):
    """Part of a query's answer; `next` continues it and is None at the end."""

    items: list[tuple[Key, Item]]
    next: str | None


class Store(Protocol):
    """The table. Reads are strongly consistent except through an index.

    Raises `StoreUnavailable` when the store cannot answer; `commit` also `Refused`, `Ambiguous`, `TooLarge`.
    """

    def commit(self, transaction: Transaction) -> None: ...

    def get(self, key: Key) -> Item | None: ...

    def get_many(self, keys: Sequence[Key]) -> list[Item | None]:
        """Items in the order of the keys, None where missing; each consistent in itself, not with each other."""
        ...

    def query(
        self,
        pk: str,
        *,
        prefix: str = "",
        after: str | None = None,
        before: str | None = None,
        limit: int | None = None,
        descending: bool = False,
    ) -> Page:
        """Items of a partition in order of sort key: those starting with `prefix`, and, where given, with a sort
        key strictly greater than `after` and strictly less than `before` (full sort keys, with the prefix).

        Stops at `limit` items or 1 MB; `Page.next` is then the last sort key returned, to be passed as `after`
        (ascending) or `before` (descending).
        """
        ...

    def query_index(
        self,
        index: str,
        partition: str,
        *,
        at_most: str | None = None,
        above: str | None = None,
        limit: int | None = None,
        descending: bool = False,
        start: str | None = None,
    ) -> Page:
        """Keys of an index (`by_list` or `due`) in order of its sort attribute: those <= `at_most` and > `above`.

        Items hold the index's own attributes only. Eventually consistent. `start` is an earlier `Page.next`.
        """
        ...


class BlobInfo(NamedTuple):
    """A stored blob: size in bytes and hexadecimal SHA-256 of its content."""

    size: int
    sha256: str


class PartsRefused(Exception):
    """The parts of a blob are not those that the store has, or not such as it takes; the message may be shown."""


class Blobs(Protocol):
    """Large contents by key. Keys start with the workspace's id."""

    def put(self, key: str, data: bytes, content_type: str = "application/octet-stream") -> BlobInfo: ...

    def put_stream(self, key: str, chunks: Iterator[bytes], content_type: str) -> BlobInfo:
        """Stores what the iterator yields with bounded memory; nothing is kept when it raises."""
        ...

    def get(self, key: str) -> bytes | None: ...

    def open(self, key: str) -> Iterator[bytes] | None:
        """Chunks of at most 1 MiB, or None when there is no such blob."""
        ...

    def delete(self, key: str) -> None:
        """No error when it is missing."""
        ...

    def size(self, key: str) -> int | None:
        """Bytes of a blob, or None when there is no such blob."""
        ...

    def presign_get(self, key: str, seconds: int, content_type: str, disposition: str) -> str | None:
        """A URL by which anybody may read the blob for so long, with these headers; None where there are none."""
        ...

    def begin_parts(self, key: str, content_type: str, sha256: str) -> str:
        """Begins a blob that arrives in parts; the handle names it from now on. `sha256` is kept beside the content.

        Parts have at least 5 MiB, all but the last, and are kept until `complete_parts` or `discard`.
        """
        ...

    def presign_part(self, key: str, handle: str, number: int, size: int, seconds: int) -> str | None:
        """A URL to which anybody may PUT that part, of exactly this size, for so long; None where there are none."""
        ...

    def put_part(self, key: str, handle: str, number: int, data: bytes) -> str:
        """Stores a part, in place of an earlier one of its number; its entity tag, in quotes.

        Raises `PartsRefused` when the handle names nothing any more.
        """
        ...

    def complete_parts(self, key: str, handle: str, tags: Sequence[str]) -> None:
        """Makes the blob of its parts, given by their entity tags in order; the parts can change no more.

        Doing so again changes nothing. Raises `PartsRefused` when parts are missing, other or too small, and when the
        handle names nothing and there is no blob.
        """
        ...

    def discard(self, key: str) -> None:
        """Deletes the blob, and whatever parts have arrived for it. No error when there is nothing."""
        ...


class Doorbell(Protocol):
    """Tells workers that work is claimable. Rings may be lost, doubled or late; the table is the truth."""

    @property
    def hears(self) -> bool:
        """Whether `wait` can hear rings; where it cannot, it returns at once."""
        ...

    def open(self, environment_id: str) -> None:
        """Makes an environment's bell. Does not raise: a bell that is missing is made when it is first rung."""
        ...

    def close(self, environment_id: str) -> None:
        """Removes the bell of an environment that has gone, with what nobody heard. Does not raise; may be repeated."""
        ...

    def ring(self, environment_id: str, work_id: str) -> None:
        """Does not raise."""
        ...

    def wait(self, environment_id: str, seconds: float) -> bool:
        """Waits until the environment's bell rings, at most so long; True when it rang."""
        ...


class Orchestrator(Protocol):
    """Starts turn executions. Starts may be lost: whoever raised `wake` also set `due`, which the sweeper reads."""

    def start(self, session_id: str, thread_id: str, wake: int) -> None:
        """Starts execution `<thread>-<wake>`; a start that already exists is success. Does not raise."""
        ...


class Cancelled(Exception):
    """The model request was cancelled by `Cancellation`."""


class Cancellation:
    """Lets one thread stop the model request of another."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] = []

    @property
    def requested(self) -> bool:
        return self._event.is_set()

    def cancel(self) -> None:
        """Requests the end; runs the callbacks once, in the calling thread."""
        with self._lock:
            callbacks, self._callbacks = self._callbacks, []
            self._event.set()
        for callback in callbacks:
            callback()

    def on_cancel(self, callback: Callable[[], None]) -> None:
        """Registers what ends the request (closing its connection, say); runs it at once if already cancelled."""
        with self._lock:
            if not self._event.is_set():
                self._callbacks.append(callback)
                return
        callback()

    def wait(self, seconds: float) -> None:
        """Sleeps; raises `Cancelled` as soon as the end is requested."""
        if self._event.wait(seconds):
            raise Cancelled

    def check(self) -> None:
        """Raises `Cancelled` if the end was requested."""
        if self._event.is_set():
            raise Cancelled


Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request in the shape of the Messages protocol, without credentials."""

    model: Json
    """The agent's `model` object: `{"id": ..., "effort"?: {"type": ...}, "speed"?: ...}`."""
    system: str | None
    tools: Sequence[Json]
    """Client tools: `{"name", "description", "input_schema"}`."""
    messages: Sequence[Json]
    """`{"role": "user" | "assistant", "content": [blocks]}` in provider form; assistant content is verbatim."""
    max_tokens: int | None = None
    """Output limit of this request; None leaves it to the client's setting."""
    session_id: str = ""
    thread_id: str = ""


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """Tokens of one request, as the provider reports them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """A complete answer."""

    content: list[Json]
    """Provider blocks verbatim: text, thinking, redacted_thinking, tool_use (`id`, `name`, `input`)."""
    stop_reason: str
    """`end_turn`, `tool_use`, `max_tokens`, `stop_sequence`, `pause_turn`, `refusal`, ..."""
    usage: ModelUsage = field(default_factory=ModelUsage)
    stop_details: Json | None = None


class ModelError(Exception):
    """A request failed. `kind` is a type of `session.error` (wire contract, section 3.4).

    `retryable` follows docs spec section 3.6; `retry_after` is what the endpoint asked for, in seconds.
    The message is safe to show: it holds no credential and is bounded.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        retryable: bool,
        retry_after: float | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.retryable = retryable
        self.retry_after = retry_after
        self.status = status


class ModelClient(Protocol):
    """Calls a model. Makes no retries of its own."""

    @property
    def name(self) -> str:
        """What `mango up` prints: the kind of client and, where it has one, its endpoint without credentials."""
        ...

    def request(
        self,
        request: ModelRequest,
        cancellation: Cancellation,
        on_text: Callable[[int, str], None] | None = None,
    ) -> ModelAnswer:
        """Streams one answer; `on_text(block index, delta)` sees text as it arrives.

        Raises:
            ModelError: the request failed.
            Cancelled: `cancellation` ended it; takes effect within a second.
        """
        ...
