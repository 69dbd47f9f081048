"""Newest-first lists of a workspace's resources, read through the `by_list` index."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from mango.domain.ledger import dump_json
from mango.domain.times import rfc3339
from mango.domain.transaction import Item, Key
from mango.services.context import Context

Json = dict[str, Any]

PAGE_BYTES = 4 * 1024 * 1024
"""Pages end here as well as at their limit, by `weight`, and are never empty before the end (architecture, 8)."""
_BATCH = 100


class Entry(NamedTuple):
    """A resource in a list, and its place there."""

    place: str
    shown: Json


class Window(NamedTuple):
    """Which part of the list: created from `gte` to `lte` (microseconds), and beyond the place of an earlier page."""

    gte: int | None = None
    lte: int | None = None
    beyond: str | None = None


class Found(NamedTuple):
    """Entries in the order asked for, and whether more follow."""

    entries: list[Entry]
    more: bool


def weight(shown: Json) -> int:
    """Bytes that an entry may take in an answer of Lambda, which carries a body as text inside JSON, escaped again;
    some of its runtimes escape everything that is not ASCII."""
    return len(json.dumps(dump_json(shown)))


def newest(
    ctx: Context,
    partition: str,
    show: Callable[[Item], Json | None],
    limit: int,
    window: Window = Window(),  # noqa: B008  # immutable
    ascending: bool = False,
) -> Found:
    """Up to `limit` resources that `show` does not answer with None, newest first unless `ascending`."""
    return newest_shown(ctx, partition, lambda items: map(show, items), limit, window, ascending)


def newest_shown(
    ctx: Context,
    partition: str,
    show_all: Callable[[list[Item]], Iterable[Json | None]],
    limit: int,
    window: Window = Window(),  # noqa: B008  # immutable
    ascending: bool = False,
) -> Found:
    """The same, for those that read more to be shown: `show_all` answers one for each item, as they are taken."""
    entries: list[Entry] = []
    size = 0
    # The first read holds the page, the one entry that tells that more follow, and that of the cursor.
    for batch in _walk(ctx, partition, window, ascending, limit + 2):
        for (place, _), shown in zip(batch, show_all([item for _, item in batch]), strict=True):
            if shown is None:
                continue
            size += weight(shown)
            if len(entries) == limit or (entries and size > PAGE_BYTES):
                return Found(entries, True)
            entries.append(Entry(place, shown))
    return Found(entries, False)


def _walk(
    ctx: Context, partition: str, window: Window, ascending: bool, batch: int
) -> Iterator[list[tuple[str, Item]]]:
    """Entries in the batches in which they are read, `batch` in the first, and more in each that follows."""
    lowest = rfc3339(window.gte) if window.gte is not None else None
    highest = f"{rfc3339(window.lte)}#~" if window.lte is not None else None
    if window.beyond is not None:
        if ascending:
            lowest = max(lowest or "", window.beyond)
        else:
            highest = min(highest or "~", window.beyond)
    start: str | None = None
    while True:
        page = ctx.store.query_index(
            "by_list",
            partition,
            at_most=highest,
            above=lowest,
            limit=min(batch, _BATCH),
            descending=not ascending,
            start=start,
        )
        yield _read(ctx, [(key, str(item["listed_at"])) for key, item in page.items], window.beyond)
        start, batch = page.next, 2 * batch
        if start is None:
            return


def _read(ctx: Context, found: list[tuple[Key, str]], beyond: str | None) -> list[tuple[str, Item]]:
    wanted = [(key, place) for key, place in found if place != beyond]
    items = ctx.store.get_many([key for key, _ in wanted]) if wanted else []
    return [
        (place, item)
        for (_, place), item in zip(wanted, items, strict=True)
        # The index may be behind: what is gone, or no longer listed, is left out.
        if item is not None and item.get("listed_at") == place
    ]
