"""The key that is given at start: one at a time, whatever befalls the commit that changes it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from mango.domain.errors import Unauthenticated, Unavailable
from mango.domain.principal import Credential
from mango.domain.transaction import Transaction
from mango.memory import Fault, ManualClock, MemoryBlobs, MemoryDoorbell, MemoryStore, RecordingOrchestrator, SeededIds
from mango.services import keys
from mango.services.bootstrap import give_key
from mango.services.context import Context

FIRST, SECOND, THIRD = (f"sk-mango-given-{name}" for name in ("first", "second", "third"))
FATES = [*product([Fault.NONE, Fault.ANSWER_LOST, Fault.NEVER, Fault.LATE], repeat=2)]


class Fates:
    def __init__(self) -> None:
        self.fates: list[Fault] = []
        self.before: Callable[[], None] | None = None

    def decide(self, transaction: Transaction) -> Fault:
        before, self.before = self.before, None
        if before is not None:
            before()
        return self.fates.pop(0) if self.fates else Fault.NONE


@pytest.fixture
def fates() -> Fates:
    return Fates()


@pytest.fixture
def ctx(fates: Fates) -> Context:
    return Context(
        store=MemoryStore(fates),
        blobs=MemoryBlobs(),
        doorbell=MemoryDoorbell(),
        orchestrator=RecordingOrchestrator(),
        clock=ManualClock(),
        ids=SeededIds(),
    )


def valid(ctx: Context, *tokens: str) -> list[str]:
    """Which of the tokens open the workspace, when nothing is remembered any more."""
    assert isinstance(ctx.clock, ManualClock)
    ctx.clock.advance(keys.REMEMBER)
    found = []
    for token in tokens or (FIRST, SECOND, THIRD):
        try:
            principal = keys.authenticate(ctx, token)
        except Unauthenticated:
            continue
        assert (principal.kind, principal.workspace_id) == (Credential.WORKSPACE, keys.DEFAULT_WORKSPACE)
        found.append(token)
    return found


@pytest.mark.parametrize("befalls", FATES, ids=str)
def test_giving_another_ends_the_one_before(ctx: Context, fates: Fates, befalls: list[Fault]) -> None:
    assert isinstance(ctx.store, MemoryStore)
    for token in (FIRST, SECOND, SECOND, THIRD, FIRST):
        fates.fates = list(befalls)
        give_key(ctx, token)
        assert valid(ctx) == [token]
        ctx.store.deliver_late()  # what arrives after it was given up changes nothing
        assert valid(ctx) == [token]
        assert len(ctx.store.dump()) == 2


def test_giving_it_again_changes_nothing(ctx: Context) -> None:
    assert isinstance(ctx.store, MemoryStore)
    give_key(ctx, FIRST)
    before = ctx.store.dump()
    give_key(ctx, FIRST)
    assert ctx.store.dump() == before


@pytest.mark.parametrize("rival", [FIRST, SECOND, THIRD])
def test_of_two_at_once_one_is_left(ctx: Context, fates: Fates, rival: str) -> None:
    for start in (None, FIRST):
        if start is not None:
            give_key(ctx, start)
        fates.before = lambda: give_key(ctx, rival)
        give_key(ctx, SECOND)
        assert valid(ctx) == [SECOND]


def test_what_died_before_its_commit_is_made_up_for(ctx: Context, fates: Fates) -> None:
    give_key(ctx, FIRST)
    fates.fates = [Fault.NEVER] * 10
    with pytest.raises(Unavailable):
        give_key(ctx, SECOND)
    assert valid(ctx) == [FIRST]
    fates.fates = []
    give_key(ctx, SECOND)
    assert valid(ctx) == [SECOND]


def test_ends_those_of_the_time_before_there_was_a_pointer(ctx: Context) -> None:
    keys.ensure_key(ctx, FIRST)
    keys.ensure_key(ctx, SECOND)
    give_key(ctx, SECOND)
    assert valid(ctx) == [SECOND]
    give_key(ctx, THIRD)
    assert valid(ctx) == [THIRD]


def test_keys_made_otherwise_stay(ctx: Context) -> None:
    made = keys.create_key(ctx, keys.DEFAULT_WORKSPACE, "app")
    keys.ensure_key(ctx, FIRST, "wrkspc_other")
    give_key(ctx, made.token)
    give_key(ctx, SECOND)
    assert valid(ctx, made.token, SECOND) == [made.token, SECOND]
    assert keys.authenticate(ctx, FIRST).workspace_id == "wrkspc_other"


def test_a_revoked_one_stays_revoked(ctx: Context) -> None:
    give_key(ctx, FIRST)
    keys.revoke(ctx, keys.DEFAULT_WORKSPACE, keys.authenticate(ctx, FIRST).key_id)
    give_key(ctx, FIRST)
    assert valid(ctx) == []
    give_key(ctx, SECOND)
    give_key(ctx, FIRST)
    assert valid(ctx) == []
