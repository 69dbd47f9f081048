"""A session on the twin, and a client of the stream application without a network."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from mango.api.errors import envelope
from mango.domain import keys
from mango.domain.errors import Unauthenticated
from mango.domain.ledger import Commit, Event
from mango.domain.principal import Credential, Principal
from mango.domain.thread import Thread
from mango.domain.transaction import Delete, Item, Key, Put, Transaction, Update
from mango.memory import Fault, ManualClock, MemoryBlobs, MemoryDoorbell, MemoryStore, RecordingOrchestrator, SeededIds
from mango.ports import Page
from mango.services.context import Context
from mango.services.session_access import primary_thread_id
from mango.stream.app import Message, StreamApp
from mango.stream.feed import Pace
from mango.stream.hub import Hub

SESSION = "sesn_01"
THREAD = primary_thread_id(SESSION)
WORKSPACE = Principal(Credential.WORKSPACE, "wrkspc_1", "key_1")
FAST = Pace(0.02, 0.05)
NEVER = Pace(60, 60)


class CountingStore(MemoryStore):
    """Counts reads, and can lose the answer of the next commit."""

    def __init__(self) -> None:
        super().__init__(faults=self)
        self.reads = 0
        self.fate = Fault.NONE

    def decide(self, transaction: Transaction) -> Fault:
        fate, self.fate = self.fate, Fault.NONE
        return fate

    def get(self, key: Key) -> Item | None:
        self.reads += 1
        return super().get(key)

    def query(self, pk: str, **options: Any) -> Page:
        self.reads += 1
        return super().query(pk, **options)


class Frame(NamedTuple):
    """What an SSE client makes of a frame."""

    id: str
    event: str
    data: dict[str, Any]


class World:
    """One session, and whoever the credential of a test is."""

    def __init__(self, pace: Pace = FAST, *, told: bool = True) -> None:
        self.store = CountingStore()
        self.principals: dict[str, Principal] = {"workspace": WORKSPACE}
        self.ctx = Context(
            store=self.store,
            blobs=MemoryBlobs(),
            doorbell=MemoryDoorbell(),
            orchestrator=RecordingOrchestrator(),
            clock=ManualClock(),
            ids=SeededIds(),
        )
        self.failing: Exception | None = None
        self.head = 0
        self.log: list[Event] = []
        self._create()
        self.hub = Hub(self.ctx, pace=pace)
        if told:
            self.store.on_commit.append(self.hub.on_commit)
            self.store.on_ambiguous.append(self.hub.on_ambiguous)

    def app(self, *, max_seconds: float | None = None) -> StreamApp:
        return StreamApp(self.ctx, self.hub, authenticate=self.authenticate, envelope=envelope, max_seconds=max_seconds)

    def authenticate(self, ctx: Context, headers: Mapping[str, str]) -> Principal:
        """Looks the credential up in `principals`; raises `failing` if that is set."""
        if self.failing is not None:
            raise self.failing
        principal = self.principals.get(headers.get("authorization", ""))
        if principal is None:
            raise Unauthenticated()
        return principal

    def append(self, *types: str, texts: Sequence[str] = (), fate: Fault = Fault.NONE) -> None:
        """Commits events, as one ledger item. Raises what the fate of the commit makes of it."""
        seq = self.head + 1
        given = [*texts, *[""] * len(types)]
        events = tuple(
            {"id": self.ctx.ids.new("sevt"), "type": type_, "text": text}
            for type_, text in zip(types, given, strict=False)
        )
        commit = Commit(seq, self.ctx.ids.new("cmt"), self.ctx.clock.now(), events)
        put = Put(keys.ledger(SESSION, THREAD, seq), commit.item())
        self.head = seq
        self.log += commit.public()
        self.store.fate = fate
        self.store.commit(Transaction((put, Update(keys.thread(SESSION, THREAD), set={"head": seq}))))

    def fill(self, events: int) -> None:
        """A history of that many events in commits of one to three."""
        while len(self.log) < events:
            count = min(len(self.log) % 3 + 1, events - len(self.log))
            self.append(*["agent.message"] * count)

    def fence(self) -> None:
        """The first step of a deletion."""
        self.store.commit(
            Transaction(
                (
                    Update(keys.meta(SESSION), set={"deleted_at": 1}),
                    Update(keys.thread(SESSION, THREAD), set={"closed": "deleting"}),
                )
            )
        )

    def remove(self) -> None:
        """The rest of it."""
        rows = [keys.thread(SESSION, THREAD), *(keys.ledger(SESSION, THREAD, n + 1) for n in range(self.head))]
        self.store.commit(Transaction(tuple(Delete(key) for key in rows)))

    def _create(self) -> None:
        thread = Thread(SESSION, THREAD, "wrkspc_1", "env_1", "agent")
        meta: Item = {"id": SESSION, "workspace_id": "wrkspc_1", "environment_id": "env_1", "status": "idle"}
        self.store.commit(Transaction((Put(keys.meta(SESSION), meta), Put(thread.key, thread.item()))))


class Client:
    """Reads a stream. `pause` is awaited before each send is accepted, which makes a slow reader."""

    def __init__(self, app: StreamApp, path: str = "", query: str = "", **headers: str) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.raw = b""
        self.complete = False
        self.reading = asyncio.Event()
        self.reading.set()
        self._left = asyncio.Event()
        self._changed = asyncio.Event()
        given = {"authorization": "workspace", **{name.replace("_", "-"): value for name, value in headers.items()}}
        scope = {
            "type": "http",
            "method": "GET",
            "path": path or f"/v1/sessions/{SESSION}/events/stream",
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        }
        self.task = asyncio.create_task(app(scope, self._receive, self._send))

    async def __aenter__(self) -> Client:
        await self.until(lambda: self.status != 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.leave()
        await asyncio.wait_for(self.task, 5)

    def leave(self) -> None:
        self._left.set()

    @property
    def frames(self) -> list[Frame]:
        """Complete frames that carry an event."""
        return [frame for block in self.raw.split(b"\n\n")[:-1] if (frame := _frame(block)) is not None]

    @property
    def events(self) -> list[Event]:
        return [frame.data for frame in self.frames]

    async def opened(self) -> None:
        """Until the stream has begun."""
        await self.until(lambda: b"\n\n" in self.raw)

    async def shows(self, count: int) -> None:
        """Until it has shown that many events."""
        await self.until(lambda: len(self.events) >= count)

    async def until(self, condition: Callable[[], Any], seconds: float = 5.0) -> None:
        async with asyncio.timeout(seconds):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def ended(self) -> None:
        await asyncio.wait_for(self.task, 5)

    async def _receive(self) -> Message:
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        await self.reading.wait()
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            self.raw += message["body"]
            self.complete = not message.get("more_body", False)
        self._changed.set()


def _frame(block: bytes) -> Frame | None:
    fields: dict[str, str] = {}
    for line in block.decode().splitlines():
        name, _, value = line.partition(": ")
        if name:
            fields[name] = value
    if "data" not in fields:
        return None
    return Frame(fields.get("id", ""), fields["event"], json.loads(fields["data"]))
