"""A transcript is the same whether it is read from the table or learned from this process's own commits."""

from __future__ import annotations

from mango.services.session_access import primary_thread_id
from mango.turn.transcript import TranscriptCache, load
from tests.support.world import World, message, result, text, tools

BASH = ("bash", {"command": "true"})


def test_learned_and_read_transcripts_are_equal() -> None:
    world = World()
    learned = TranscriptCache()
    world.store.on_commit.append(learned.observe)
    session = world.session("go")
    world.drive(tools(BASH, BASH, words="both"))
    first, second = world.open_calls(session)
    world.send(session, result(second, "two"))
    world.send(session, message("and be quick"), result(first, "one"))
    world.drive(text("done"))
    world.send(session, {"type": "user.interrupt"})
    head, thread_id = world.thread(session).head, primary_thread_id(session)
    assert learned.get(session, thread_id).seq == head
    fresh = load(TranscriptCache(), world.store, world.ctx.blobs, session, thread_id, head)
    assert learned.get(session, thread_id).messages == fresh.messages
    assert [m["role"] for m in fresh.messages] == ["user", "assistant", "user", "assistant"]


def test_a_gap_in_what_was_learned_is_read() -> None:
    world = World()
    session = world.session("one")
    world.drive(text("first"))
    learned = TranscriptCache()
    world.store.on_commit.append(learned.observe)  # begins in the middle, so learns nothing
    world.say(session, "two")
    world.drive(text("second"))
    head, thread_id = world.thread(session).head, primary_thread_id(session)
    assert learned.get(session, thread_id).seq == 0
    assert len(load(learned, world.store, world.ctx.blobs, session, thread_id, head).messages) == 4
