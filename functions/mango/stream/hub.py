"""The feeds of one process, and how commits of the same process reach them."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from mango.domain import keys
from mango.domain.transaction import Delete, Put, Transaction, Update, Write
from mango.services.context import Context
from mango.stream.feed import Feed, Pace
from mango.stream.subscriber import End, Subscriber
from mango.stream.tools import Tools

LEDGER = "EV#"
META = "META"
THREADS = 8


class Hub:
    """Joins subscribers to the feed of their thread.

    Everything runs on the event loop of the first subscriber, but `on_commit`, `on_ambiguous`
    and `close`, which any thread may call.
    """

    def __init__(self, ctx: Context, *, pace: Pace | None = None) -> None:
        threads = ThreadPoolExecutor(THREADS, thread_name_prefix="stream")
        self.tools = Tools(ctx.store, ctx.blobs, ctx.clock, ctx.ids, threads)
        self.closed = False
        self._pace = pace or Pace()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._feeds: dict[str, dict[str, Feed]] = {}
        """By partition and by prefix of the ledger's keys. Other threads only look things up in it."""
        self._subscribers: set[Subscriber] = set()

    @property
    def subscribers(self) -> int:
        """How many streams are open."""
        return len(self._subscribers)

    @property
    def feeds(self) -> int:
        """How many threads are watched."""
        return sum(len(feeds) for feeds in self._feeds.values())

    def open(self, subscriber: Subscriber) -> None:
        """Registers a stream that has begun, so that `close` ends it."""
        self._loop = asyncio.get_running_loop()
        self._subscribers.add(subscriber)
        if self.closed:
            subscriber.finish(End.CLOSING)

    def attach(self, session_id: str, thread_id: str, subscriber: Subscriber) -> bool:
        """Joins a subscriber to the feed of its thread, which is started if need be.

        False if the feed is already past what the subscriber has: it must read up to there by itself, at its own
        speed, and try again.
        """
        partition, prefix = keys.session_partition(session_id), keys.ledger_prefix(thread_id)
        feed = self._feeds.get(partition, {}).get(prefix)
        if feed is None:
            feed = Feed(self.tools, session_id, thread_id, subscriber.done, self._pace)
            self._feeds.setdefault(partition, {})[prefix] = feed
            started = feed
            feed.start(lambda: self._forget(partition, prefix, started))
        elif subscriber.done < feed.seq:
            return False
        feed.add(subscriber)
        return True

    def leave(self, session_id: str, thread_id: str, subscriber: Subscriber) -> None:
        """Ends a subscription; the feed stops with its last subscriber."""
        self._subscribers.discard(subscriber)
        partition, prefix = keys.session_partition(session_id), keys.ledger_prefix(thread_id)
        feed = self._feeds.get(partition, {}).get(prefix)
        if feed is not None and feed.remove(subscriber):
            feed.stop()
            self._forget(partition, prefix, feed)

    def on_commit(self, transaction: Transaction) -> None:
        """Listener of the store; returns at once for sessions that nobody watches."""
        loop = self._loop
        if not self._feeds or loop is None:
            return
        for write in transaction.writes:
            feeds = self._feeds.get(write.key.pk)
            if feeds:
                self._tell(loop, feeds, write)

    def on_ambiguous(self, transaction: Transaction) -> None:
        """Listener of the store: what it touched is looked at now, since nobody may ever announce it."""
        loop = self._loop
        if not self._feeds or loop is None:
            return
        for partition in {write.key.pk for write in transaction.writes}:
            for feed in list(self._feeds.get(partition, {}).values()):
                loop.call_soon_threadsafe(feed.doubt)

    def close(self) -> None:
        """Ends every stream behind what is committed by now, those that still catch up behind what they have sent;
        new ones end at once. Any thread may call it, also twice."""
        self.closed = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._finish_all)

    def _finish_all(self) -> None:
        feeds = [feed for feeds in self._feeds.values() for feed in feeds.values()]
        for feed in feeds:
            feed.close()
        attached = {subscriber for feed in feeds for subscriber in feed.subscribers}
        for subscriber in self._subscribers - attached:
            subscriber.finish(End.CLOSING)

    def _tell(self, loop: asyncio.AbstractEventLoop, feeds: dict[str, Feed], write: Write) -> None:
        sk = write.key.sk
        if sk.startswith(LEDGER) and isinstance(write, Put):
            feed = feeds.get(sk[: sk.rindex("#") + 1])
            seq = write.item["seq"]
            if feed is not None and isinstance(seq, int):
                loop.call_soon_threadsafe(feed.offer, seq, dict(write.item))
        elif sk == META and _deletes(write):
            for feed in list(feeds.values()):
                loop.call_soon_threadsafe(feed.nudge)

    def _forget(self, partition: str, prefix: str, feed: Feed) -> None:
        feeds = self._feeds.get(partition, {})
        if feeds.get(prefix) is feed:
            del feeds[prefix]
            if not feeds:
                del self._feeds[partition]


def _deletes(write: Write) -> bool:
    return isinstance(write, Delete) or (isinstance(write, Update) and "deleted_at" in write.set)
