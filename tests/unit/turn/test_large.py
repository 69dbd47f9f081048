"""Large inputs: contents go to blobs, and everything stays within the store's limits."""

from __future__ import annotations

from mango.domain import keys
from mango.memory import MemoryBlobs
from mango.services import deletion
from tests.support.world import WORKSPACE, World, result, text, tools

KIB = 1024


def test_a_large_message_reaches_the_model_whole() -> None:
    world = World()
    words = "x" * (900 * KIB)
    session = world.session(words)
    world.drive(text("read"))
    assert world.model.requests[0].messages[0]["content"][0]["text"] == words
    assert world.history(session)[0]["content"][0]["text"] == words


def test_a_batch_of_large_messages_waits_in_blobs() -> None:
    world = World()
    session = world.session("first")
    world.drive(tools(("bash", {})))
    many = ["y" * (90 * KIB) + str(n) for n in range(60)]
    world.say(session, *many)
    world.send(session, result(world.open_calls(session)[0], "z" * (350 * KIB)))
    world.drive(text("all"))
    blocks = world.model.requests[-1].messages[-1]["content"]
    assert [block["text"] for block in blocks[1:]] == many
    assert world.thread(session).waiting == 0


def test_more_than_a_transaction_can_take_up_is_taken_up_in_order() -> None:
    world = World()
    session = world.session("first")
    world.drive(tools(("bash", {})))
    for start in (0, 100):
        world.say(session, *[f"m{n}" for n in range(start, start + 100)])
    world.send(session, result(world.open_calls(session)[0]))
    world.drive(*[text("ok")] * 200)
    said = [event["content"][0]["text"] for event in world.history(session) if event["type"] == "user.message"]
    assert said == ["first", *[f"m{n}" for n in range(200)]]
    assert world.thread(session).waiting == 0


def test_deleting_a_session_removes_its_blobs_and_rows() -> None:
    world = World()
    session = world.session("x" * (900 * KIB))
    world.drive(text("w" * (200 * KIB)))
    blobs = world.ctx.blobs
    assert isinstance(blobs, MemoryBlobs)
    assert any(session in key for key in list(blobs.keys()))
    deletion.delete(world.ctx, WORKSPACE, session)
    assert not any(session in key for key in list(blobs.keys()))
    left = world.store.query(keys.session_partition(session)).items
    assert [key.sk for key, _ in left] == ["META"]
    assert left[0][1]["deleted_at"]
