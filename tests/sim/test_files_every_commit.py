"""Every commit of a file's life meets each fault; nothing is left that nobody knows of, and no file without content.

Clients do again what was not acknowledged; the sweeper does the rest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from mango.domain.errors import Conflict, InvalidRequest, NotFound, RetryableConflict, Unavailable
from mango.domain.transaction import Ambiguous, StoreUnavailable, Transaction
from mango.domain.wire.files import FileListQuery
from mango.domain.wire.uploads import UploadComplete, UploadCreate
from mango.memory import MemoryBlobs
from mango.memory.faults import Fault
from mango.services import files, uploads
from tests.sim.test_every_commit import Died, DiesAfter, OneFault
from tests.support.world import WORKSPACE, World

Json = dict[str, Any]
Story = Callable[[World], list[Json]]
CONTENT = b"content"
DAY = 24 * 3600
FATES = [Fault.UNAVAILABLE, Fault.ANSWER_LOST, Fault.LATE, Fault.NEVER, None]


def again(world: World, act: Callable[[], Json]) -> Json | None:
    """Until it is acknowledged; None when it was done already. A try that was lost may arrive before the next."""
    for attempt in range(5):
        try:
            return act()
        except (StoreUnavailable, Ambiguous, Unavailable, RetryableConflict, Died):
            world.clock.advance(uploads.CHECK_SECONDS)
            if attempt:
                world.store.deliver_late()
        except (NotFound, Conflict):
            return None
    raise AssertionError("never got through")


def one_request(world: World) -> list[Json]:
    """A file that comes by one request and stays."""
    made = again(world, lambda: files.store_upload(world.ctx, "wrkspc_test", "a", None, iter([CONTENT])))
    return [made] if made else []


def in_parts(world: World) -> list[Json]:
    """A file that comes in parts and stays; whoever completes gets the same file."""
    announced = {"filename": "a", "size_bytes": len(CONTENT), "sha256": hashlib.sha256(CONTENT).hexdigest()}
    begun = again(world, lambda: uploads.create(world.ctx, WORKSPACE, UploadCreate.parse(announced)))
    if begun is None:
        return []
    upload_id = begun["id"]
    part = again(world, lambda: uploads.put_part(world.ctx, WORKSPACE, upload_id, "1", [CONTENT]))
    if part is None:
        return []
    body = UploadComplete.parse({"parts": [part]})
    first = again(world, lambda: uploads.complete(world.ctx, WORKSPACE, upload_id, body))
    assert again(world, lambda: uploads.complete(world.ctx, WORKSPACE, upload_id, body)) == first
    return [first] if first else []


def deleted(world: World) -> list[Json]:
    """A file that comes and goes."""
    for made in one_request(world):
        again(world, lambda file_id=made["id"]: files.delete(world.ctx, WORKSPACE, file_id))  # type: ignore[misc]
    return []


def aborted(world: World) -> list[Json]:
    """An upload that is given up after its only part."""
    announced = {"filename": "a", "size_bytes": len(CONTENT), "sha256": "0" * 64}
    begun = again(world, lambda: uploads.create(world.ctx, WORKSPACE, UploadCreate.parse(announced)))
    if begun is None:
        return []
    again(world, lambda: uploads.put_part(world.ctx, WORKSPACE, begun["id"], "1", [CONTENT]))
    again(world, lambda: uploads.abort(world.ctx, WORKSPACE, begun["id"]))
    return []


def wrong(world: World) -> list[Json]:
    """An upload of other content than was announced, which nobody aborts."""
    announced = {"filename": "a", "size_bytes": len(CONTENT), "sha256": "0" * 64}
    begun = again(world, lambda: uploads.create(world.ctx, WORKSPACE, UploadCreate.parse(announced)))
    if begun is None:
        return []
    part = again(world, lambda: uploads.put_part(world.ctx, WORKSPACE, begun["id"], "1", [CONTENT]))
    body = UploadComplete.parse({"parts": [part]}) if part else None
    with suppress(InvalidRequest):
        assert body is None or again(world, lambda: uploads.complete(world.ctx, WORKSPACE, begun["id"], body)) is None
    return []


STORIES = [one_request, in_parts, deleted, aborted, wrong]


def settle(world: World, *, later: bool = False) -> None:
    """What is late arrives, or `later`, after sweeps; a day and more passes with sweeps that may die too."""
    for n in range(4):
        if not later or n >= 2:
            world.store.deliver_late()
        with suppress(StoreUnavailable, Died):
            world.sweep(DAY)


def check(world: World, kept: list[Json]) -> None:
    """Files that were acknowledged are there; every blob has its file and every file its blob; nothing is owed."""
    blobs = world.ctx.blobs
    assert isinstance(blobs, MemoryBlobs)
    items = [item for key, item in world.store.dump().items() if key.pk.startswith("FILE#")]
    assert sorted(blobs.keys()) == sorted(str(item["blob"]) for item in items)
    assert all(item["state"] == "ready" and "due" not in item for item in items)
    listed = files.list_page(world.ctx, WORKSPACE, FileListQuery())["data"]
    assert len(listed) == len(items)
    for made in kept:
        assert made in listed
        opened = files.open_content(world.ctx, WORKSPACE, made["id"])
        assert isinstance(opened, files.Content)
        assert b"".join(opened.chunks) == CONTENT


def commits_of(story: Story) -> int:
    faults = OneFault(0, Fault.NONE)
    world = World(faults=faults)
    faults.armed = True
    kept = story(world)
    settle(world)
    check(world, kept)
    return faults.count


@pytest.mark.parametrize("later", [False, True], ids=["", "later"])
@pytest.mark.parametrize("fate", FATES, ids=lambda fate: fate.name.lower() if fate else "dies before")
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_every_commit_meets_a_fault(story: Story, fate: Fault | None, later: bool) -> None:
    total = commits_of(story)
    assert total >= 2
    for at in range(1, total + 1):
        faults = OneFault(at, fate)
        world = World(faults=faults)
        faults.armed = True
        kept = story(world)
        settle(world, later=later)
        check(world, kept)


class LateThenUnavailable(OneFault):
    """The answer of the n-th commit is lost, and some of those after it find no store."""

    def __init__(self, at: int, *unavailable: int) -> None:
        super().__init__(at, Fault.LATE)
        self._unavailable = unavailable

    def decide(self, transaction: Transaction) -> Fault:
        fate = super().decide(transaction)
        return Fault.UNAVAILABLE if self.count - self._at in self._unavailable else fate


@pytest.mark.parametrize("later", [False, True], ids=["", "later"])
@pytest.mark.parametrize("unavailable", [(1, 2), (1, 3)])
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_late_commits_of_what_was_given_up(story: Story, unavailable: tuple[int, ...], later: bool) -> None:
    for at in range(1, commits_of(story) + 1):
        faults = LateThenUnavailable(at, *unavailable)
        world = World(faults=faults)
        faults.armed = True
        kept = story(world)
        settle(world, later=later)
        check(world, kept)


class Rival(OneFault):
    """Somebody acts between the n-th commit's reading and that commit."""

    def __init__(self, at: int, act: Callable[[], None]) -> None:
        super().__init__(at, Fault.NONE)
        self._act = act

    def decide(self, transaction: Transaction) -> Fault:
        fate = super().decide(transaction)
        if self.armed and self.count == self._at:
            self.armed = False
            self._act()
        return fate


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_the_sweeper_comes_between(story: Story) -> None:
    """A day has passed within a call; what it was to make is given up, or made, but nothing between."""
    for at in range(1, commits_of(story) + 1):
        world = World()
        faults = Rival(at, lambda world=world: world.sweep(DAY))  # type: ignore[misc]
        world.store.faults = faults
        faults.armed = True
        kept = story(world)
        settle(world)
        check(world, kept)


def test_a_content_takes_longer_than_a_day() -> None:
    world = World()

    def slowly() -> Iterator[bytes]:
        yield CONTENT
        world.sweep(DAY)

    with pytest.raises(NotFound):
        files.store_upload(world.ctx, "wrkspc_test", "a", None, slowly())
    check(world, [])


@pytest.mark.parametrize("ending", [aborted, deleted])
def test_an_upload_is_completed_while_it_is_removed(ending: Story) -> None:
    """By its owner, or by the sweeper a day later."""
    announced = {"filename": "a", "size_bytes": len(CONTENT), "sha256": hashlib.sha256(CONTENT).hexdigest()}
    for at in range(1, 5):
        world = World()
        begun = uploads.create(world.ctx, WORKSPACE, UploadCreate.parse(announced))
        part = uploads.put_part(world.ctx, WORKSPACE, begun["id"], "1", [CONTENT])
        kept: list[Json] = []

        def complete(world: World = world, begun: Json = begun, part: Json = part, kept: list[Json] = kept) -> None:
            with suppress(NotFound):
                body = UploadComplete.parse({"parts": [part]})
                kept.append(uploads.complete(world.ctx, WORKSPACE, begun["id"], body))

        faults = Rival(at, complete)
        world.store.faults = faults
        faults.armed = True
        with suppress(Conflict):
            if ending is aborted:
                uploads.abort(world.ctx, WORKSPACE, begun["id"])
            else:
                world.sweep(DAY)
        settle(world)
        check(world, kept)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_death_after_every_commit(story: Story) -> None:
    for at in range(1, commits_of(story) + 1):
        holder: list[World] = []
        faults = DiesAfter(at, lambda holder=holder: holder[0])  # type: ignore[misc]
        world = World(faults=faults)
        holder.append(world)
        faults.armed = True
        kept = story(world)
        settle(world)
        check(world, kept)


class DyingBlobs(MemoryBlobs):
    """The process dies at the n-th change, before it or after it."""

    def __init__(self, at: int, *, after: bool) -> None:
        super().__init__()
        self.count = 0
        self._at = at
        self._after = after

    def __getattribute__(self, name: str) -> Any:
        method = super().__getattribute__(name)
        if name not in ("put_stream", "begin_parts", "put_part", "complete_parts", "delete", "discard"):
            return method

        def dying(*args: Any) -> Any:
            self.count += 1
            hit = self.count == self._at
            if hit and not self._after:
                raise Died
            answer = method(*args)
            if hit:
                raise Died
            return answer

        return dying


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_death_at_every_change_of_a_blob(story: Story, after: bool) -> None:
    at, total = 0, 1
    while at < total:
        at += 1
        world, blobs = World(), DyingBlobs(at, after=after)
        world.ctx = replace(world.ctx, blobs=blobs)
        kept = story(world)
        total = max(total, blobs.count)
        settle(world)
        check(world, kept)
    assert total >= 1
