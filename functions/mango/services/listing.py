"""Newest-first lists of a workspace's resources, read through the `by_list` index."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from mango.domain.ledger import dump_json
from mango.domain.times import rfc3339
from mango.domain.transaction import Item, Key
from mango.services.context import Context

Json = dict[str, Any]

PAGE_BYTES = 4 * 1024 * 1024
"""Pages end here as well as at their limit (architecture, section 8)."""
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


def newest(
    ctx: Context,
    partition: str,
    show: Callable[[Item], Json | None],
    limit: int,
    window: Window = Window(),  # noqa: B008  # immutable
    ascending: bool = False,
) -> Found:
    """Up to `limit` resources that `show` does not answer with None, newest first unless `ascending`."""
    entries: list[Entry] = []
    size = 0
    # The first read holds the page, the one entry that tells that more follow, and that of the cursor.
    for place, item in _walk(ctx, partition, window, ascending, limit + 2):
        shown = show(item)
        if shown is None:
            continue
        size += len(dump_json(shown).encode())
        if len(entries) == limit or (entries and size > PAGE_BYTES):
            return Found(entries, True)
        entries.append(Entry(place, shown))
    return Found(entries, False)


def _walk(ctx: Context, partition: str, window: Window, ascending: bool, batch: int) -> Iterator[tuple[str, Item]]:
    """Entries as they are wanted, `batch` in the first read, and more in each that follows."""
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
        yield from _read(ctx, [(key, str(item["listed_at"])) for key, item in page.items], window.beyond)
        start, batch = page.next, 2 * batch
        if start is None:
            return


def _read(ctx: Context, found: list[tuple[Key, str]], beyond: str | None) -> Iterator[tuple[str, Item]]:
    wanted = [(key, place) for key, place in found if place != beyond]
    items = ctx.store.get_many([key for key, _ in wanted]) if wanted else []
    for (_, place), item in zip(wanted, items, strict=True):
        # The index may be behind: what is gone, or no longer listed, is left out.
        if item is not None and item.get("listed_at") == place:
            yield place, item
