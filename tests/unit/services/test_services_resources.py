"""Agents, environments, files and keys under lost answers, rivals and large contents."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mango.domain import keys as table
from mango.domain.errors import ContentTooLarge, MangoError, NotFound, RetryableConflict, Unauthenticated, Unavailable
from mango.domain.principal import Credential, Principal
from mango.domain.transaction import Put, StoreUnavailable, Transaction, Update
from mango.domain.wire.agents import AgentCreate, AgentListQuery
from mango.domain.wire.environments import EnvironmentCreate, EnvironmentListQuery
from mango.memory import Fault, ManualClock, MemoryBlobs, MemoryDoorbell, MemoryStore, RecordingOrchestrator, SeededIds
from mango.services import agents, environments, files, keys
from mango.services.context import Context
from mango.turn.sweep import sweep

Json = dict[str, Any]
ME = Principal(Credential.WORKSPACE, "wrkspc_a", "apikey_a")
OTHER = Principal(Credential.WORKSPACE, "wrkspc_b", "apikey_b")


class Script:
    """Fates for the next commits; later ones go well."""

    def __init__(self) -> None:
        self.fates: list[Fault] = []
        self.before: Callable[[Transaction], None] | None = None

    def decide(self, transaction: Transaction) -> Fault:
        before, self.before = self.before, None
        if before is not None:
            before(transaction)
        return self.fates.pop(0) if self.fates else Fault.NONE


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def ctx(script: Script) -> Context:
    return Context(
        store=MemoryStore(script),
        blobs=MemoryBlobs(),
        doorbell=MemoryDoorbell(),
        orchestrator=RecordingOrchestrator(),
        clock=ManualClock(),
        ids=SeededIds(),
    )


def rows(ctx: Context) -> int:
    assert isinstance(ctx.store, MemoryStore)
    return len(ctx.store.dump())


def blobs(ctx: Context) -> dict[str, bytes]:
    assert isinstance(ctx.blobs, MemoryBlobs)
    return ctx.blobs._blobs


def advance(ctx: Context, seconds: float) -> None:
    assert isinstance(ctx.clock, ManualClock)
    ctx.clock.advance(seconds)


def new_agent(ctx: Context, **fields: Any) -> Json:
    return agents.create(ctx, ME, AgentCreate.parse({"name": "Ada", "model": "m", **fields}))


def new_environment(ctx: Context, **fields: Any) -> Json:
    return environments.create(ctx, ME, EnvironmentCreate.parse({"name": "Here", **fields}))


def new_file(ctx: Context) -> Json:
    return files.store_upload(ctx, ME.workspace_id, "a.txt", "text/plain", [b"x"])


CREATES: list[tuple[Callable[[Context], Json], int]] = [(new_agent, 2), (new_environment, 1), (new_file, 1)]
LOST = [
    [Fault.ANSWER_LOST],
    [Fault.NEVER],
    [Fault.NEVER, Fault.ANSWER_LOST, Fault.NEVER],
]


@pytest.mark.parametrize("fates", LOST, ids=str)
@pytest.mark.parametrize(("create", "items"), CREATES)
def test_lost_answers_create_once(
    ctx: Context, script: Script, create: Callable[[Context], Json], items: int, fates: list[Fault]
) -> None:
    script.fates = list(fates)
    assert create(ctx)["id"]
    assert rows(ctx) == items


@pytest.mark.parametrize(("create", "items"), CREATES)
def test_what_stays_unknown_is_said_so(
    ctx: Context, script: Script, create: Callable[[Context], Json], items: int
) -> None:
    script.fates = [Fault.NEVER] * 5
    with pytest.raises(Unavailable, match="unknown"):
        create(ctx)
    assert rows(ctx) == 0


@pytest.mark.parametrize(("create", "items"), CREATES)
def test_a_store_that_refuses_leaves_nothing(
    ctx: Context, script: Script, create: Callable[[Context], Json], items: int
) -> None:
    script.fates = [Fault.UNAVAILABLE]
    with pytest.raises(StoreUnavailable):
        create(ctx)
    assert (rows(ctx), blobs(ctx)) == (0, {})


ARCHIVES: list[tuple[Callable[..., Json], Callable[..., Json], Callable[..., Json]]] = [
    (new_agent, agents.archive, agents.retrieve),
    (new_environment, environments.archive, environments.retrieve),
]


@pytest.mark.parametrize("fates", [[], *LOST], ids=str)
@pytest.mark.parametrize(("create", "archive", "retrieve"), ARCHIVES)
def test_archiving_happens_once(
    ctx: Context,
    script: Script,
    create: Callable[..., Json],
    archive: Callable[..., Json],
    retrieve: Callable[..., Json],
    fates: list[Fault],
) -> None:
    made = create(ctx)
    assert made["archived_at"] is None
    advance(ctx, 1)
    script.fates = list(fates)
    done = archive(ctx, ME, made["id"])
    assert done["archived_at"] == done["updated_at"] > made["created_at"]
    advance(ctx, 1)
    assert archive(ctx, ME, made["id"]) == done == retrieve(ctx, ME, made["id"])
    with pytest.raises(NotFound):
        archive(ctx, OTHER, made["id"])


def test_a_faster_rival_archives(ctx: Context, script: Script) -> None:
    made = new_agent(ctx)
    key = table.agent(made["id"])
    script.before = lambda _: ctx.store.commit(Transaction((Update(key, {"archived_at": 7, "updated_at": 7}),)))
    assert agents.archive(ctx, ME, made["id"])["archived_at"] == "1970-01-01T00:00:00.000007Z"


def test_endless_rivals_are_given_up_on(ctx: Context, script: Script) -> None:
    made = new_agent(ctx)
    script.fates = [Fault.NEVER] * 9
    with pytest.raises(RetryableConflict):
        agents.archive(ctx, ME, made["id"])


def test_versions_of_an_agent(ctx: Context) -> None:
    made = new_agent(ctx)
    assert agents.retrieve(ctx, ME, made["id"], 1) == made
    # A second version, as an update will write it: the first must stay what it was.
    later = {**_item(ctx, made["id"]), "version": 2, "updated_at": 5}
    definition = json.loads(str(later["definition"])) | {"name": "Grace"}
    later["definition"] = json.dumps(definition)
    ctx.store.commit(Transaction((Put(table.agent(made["id"]), later, new=False),)))
    assert agents.retrieve(ctx, ME, made["id"])["name"] == "Grace"
    assert agents.retrieve(ctx, ME, made["id"], 1) == made
    agents.archive(ctx, ME, made["id"])
    assert agents.retrieve(ctx, ME, made["id"], 1)["archived_at"] is not None
    for version in (3, 100_000_000, 10**17):
        with pytest.raises(NotFound, match="no version"):
            agents.retrieve(ctx, ME, made["id"], version)
    for foreign in (OTHER, Principal(Credential.WORKSPACE, "", "")):
        with pytest.raises(NotFound):
            agents.retrieve(ctx, foreign, made["id"], 1)


def _item(ctx: Context, agent_id: str) -> Json:
    item = ctx.store.get(table.agent(agent_id))
    assert item is not None
    return dict(item)


def test_large_definitions_go_to_a_blob(ctx: Context) -> None:
    made = new_agent(ctx, system="字" * 100_000, metadata={"z": "1", "a": "2"})
    assert len(blobs(ctx)) == 1
    again = agents.retrieve(ctx, ME, made["id"])
    assert again == made
    assert list(again["metadata"]) == ["z", "a"]
    assert len(json.dumps(_item(ctx, made["id"]))) < 2000
    blobs(ctx).clear()
    with pytest.raises(MangoError):
        agents.retrieve(ctx, ME, made["id"])


def _pages(fetch: Callable[[str | None], Json]) -> Iterator[list[str]]:
    page: str | None = None
    while True:
        answer = fetch(page)
        yield [one["id"] for one in answer["data"]]
        page = answer["next_page"]
        if page is None:
            return


@pytest.mark.parametrize("gap", [0, 1])
def test_lists_show_everything_once_newest_first(ctx: Context, gap: float) -> None:
    """Also when many were created at one moment, and while others are created and archived in between."""
    made = []
    for _ in range(7):
        made.append(new_agent(ctx)["id"])
        advance(ctx, gap)
    agents.archive(ctx, ME, made[3])
    agents.create(ctx, OTHER, AgentCreate.parse({"name": "b", "model": "m"}))

    def fetch(page: str | None) -> Json:
        if page is not None and gap:
            advance(ctx, 1)
            new_agent(ctx)
        return agents.list_page(ctx, ME, AgentListQuery(limit=2, page=page))

    seen = [one for page in _pages(fetch) for one in page]
    assert seen == [one for one in reversed(made) if one != made[3]]
    everything = agents.list_page(ctx, ME, AgentListQuery(include_archived=True, limit=100))["data"]
    assert {one["id"] for one in everything} >= set(made)


def test_lists_are_bounded_by_creation(ctx: Context) -> None:
    start = ctx.clock.now()
    made = []
    for _ in range(4):
        made.append(new_agent(ctx)["id"])
        advance(ctx, 1)
    second = start + 1_000_000
    third = start + 2_000_000
    bounded = agents.list_page(ctx, ME, AgentListQuery(created_at_gte=second, created_at_lte=third))["data"]
    assert [one["id"] for one in bounded] == [made[2], made[1]]
    assert agents.list_page(ctx, ME, AgentListQuery(created_at_gte=third + 1, created_at_lte=third + 2))["data"] == []


def test_more_entries_than_one_read_brings(ctx: Context) -> None:
    made = [new_environment(ctx)["id"] for _ in range(230)]
    for archived in made[10:220]:
        environments.archive(ctx, ME, archived)
    fetch = lambda page: environments.list_page(ctx, ME, EnvironmentListQuery(limit=12, page=page))  # noqa: E731
    pages = list(_pages(fetch))
    assert [len(page) for page in pages] == [12, 8]
    assert [one for page in pages for one in page] == made[220:][::-1] + made[:10][::-1]


def test_pages_stop_at_their_bytes(ctx: Context) -> None:
    made = [new_agent(ctx, system="x" * 100_000, description=str(n))["id"] for n in range(60)]
    pages = list(_pages(lambda page: agents.list_page(ctx, ME, AgentListQuery(limit=100, page=page))))
    assert len(pages) == 2
    assert [one for page in pages for one in page] == made[::-1]


def test_names_need_not_differ(ctx: Context) -> None:
    assert new_environment(ctx)["id"] != new_environment(ctx)["id"]


def test_an_environment_echoes_its_settings(ctx: Context) -> None:
    made = new_environment(ctx, description="d", metadata={"a": "b"}, config={"type": "self_hosted"})
    assert {k: v for k, v in made.items() if k not in ("id", "created_at", "updated_at")} == {
        "type": "environment",
        "name": "Here",
        "description": "d",
        "config": {"type": "self_hosted"},
        "metadata": {"a": "b"},
        "scope": "organization",
        "archived_at": None,
    }
    with pytest.raises(NotFound) as caught:
        environments.retrieve(ctx, ME, "env_none")
    assert caught.value.details == {"error_code": "environment_not_found"}


def test_an_upload_that_breaks_keeps_nothing(ctx: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_FILE_BYTES", 10)
    files.store_upload(ctx, ME.workspace_id, "a", None, [b"x" * 5] * 2)
    with pytest.raises(ContentTooLarge):
        files.store_upload(ctx, ME.workspace_id, "a", None, iter([b"x" * 5] * 3))

    def breaks() -> Iterator[bytes]:
        yield b"x"
        raise ConnectionError

    with pytest.raises(ConnectionError):
        files.store_upload(ctx, ME.workspace_id, "a", None, breaks())
    assert (rows(ctx), len(blobs(ctx))) == (2, 1)  # as after a death: the sweeper removes what was written down
    advance(ctx, 24 * 3600)
    assert sweep(ctx).deleted == 1
    assert (rows(ctx), len(blobs(ctx))) == (1, 1)


def test_deleting_can_be_finished_by_a_second_try(ctx: Context, script: Script) -> None:
    made = new_file(ctx)
    script.fates = [Fault.NONE, Fault.UNAVAILABLE]
    with pytest.raises(StoreUnavailable):
        files.delete(ctx, ME, made["id"])
    with pytest.raises(NotFound):
        files.retrieve(ctx, ME, made["id"])
    with pytest.raises(NotFound):
        files.delete(ctx, OTHER, made["id"])
    assert files.delete(ctx, ME, made["id"])["type"] == "file_deleted"
    assert (rows(ctx), blobs(ctx)) == (0, {})


def test_only_digests_of_keys_are_stored(ctx: Context) -> None:
    environment = new_environment(ctx)
    workspace_key = keys.create_key(ctx, ME.workspace_id, "app")
    environment_key = keys.create_key(ctx, ME.workspace_id, "worker", environment["id"])
    assert isinstance(ctx.store, MemoryStore)
    stored = json.dumps([[*key, item] for key, item in ctx.store.dump().items()])
    for made in (workspace_key, environment_key):
        assert made.token not in stored
        assert made.token not in json.dumps(made.shown)
    assert keys.authenticate(ctx, workspace_key.token) == Principal(
        Credential.WORKSPACE, ME.workspace_id, workspace_key.shown["id"]
    )
    assert keys.authenticate(ctx, environment_key.token) == Principal(
        Credential.ENVIRONMENT, ME.workspace_id, environment_key.shown["id"], environment["id"]
    )
    assert {one["id"] for one in keys.list_keys(ctx, ME.workspace_id)} == {
        workspace_key.shown["id"],
        environment_key.shown["id"],
    }
    with pytest.raises(NotFound):
        keys.create_key(ctx, OTHER.workspace_id, "worker", environment["id"])


def test_revoked_keys_end(ctx: Context) -> None:
    """Environment keys at once, workspace keys as soon as nothing is remembered of them."""
    environment = new_environment(ctx)
    workspace_key = keys.create_key(ctx, ME.workspace_id, "app")
    environment_key = keys.create_key(ctx, ME.workspace_id, "worker", environment["id"])
    for made in (workspace_key, environment_key):
        keys.authenticate(ctx, made.token)
        assert keys.revoke(ctx, ME.workspace_id, made.shown["id"])["revoked_at"]
        assert keys.revoke(ctx, ME.workspace_id, made.shown["id"])["revoked_at"]
        with pytest.raises(NotFound):
            keys.revoke(ctx, OTHER.workspace_id, made.shown["id"])
    with pytest.raises(Unauthenticated):
        keys.authenticate(ctx, environment_key.token)
    keys.authenticate(ctx, workspace_key.token)
    advance(ctx, 2)
    with pytest.raises(Unauthenticated):
        keys.authenticate(ctx, workspace_key.token)


def test_a_clock_set_back_forgets(ctx: Context) -> None:
    made = keys.create_key(ctx, ME.workspace_id, "app")
    keys.authenticate(ctx, made.token)
    keys.revoke(ctx, ME.workspace_id, made.shown["id"])
    advance(ctx, -1)
    with pytest.raises(Unauthenticated):
        keys.authenticate(ctx, made.token)


def test_another_store_knows_nothing(ctx: Context) -> None:
    from dataclasses import replace

    made = keys.create_key(ctx, ME.workspace_id, "app")
    keys.authenticate(ctx, made.token)
    with pytest.raises(Unauthenticated):
        keys.authenticate(replace(ctx, store=MemoryStore()), made.token)


@pytest.mark.parametrize("fates", LOST, ids=str)
def test_a_given_key_is_made_once_and_stays_revoked(ctx: Context, script: Script, fates: list[Fault]) -> None:
    script.fates = list(fates)
    for _ in range(2):
        keys.ensure_key(ctx, "sk-mango-local-development")
    principal = keys.authenticate(ctx, "sk-mango-local-development")
    assert (principal.workspace_id, rows(ctx)) == ("wrkspc_default", 1)
    keys.revoke(ctx, "wrkspc_default", principal.key_id)
    keys.ensure_key(ctx, "sk-mango-local-development")
    advance(ctx, 2)
    with pytest.raises(Unauthenticated):
        keys.authenticate(ctx, "sk-mango-local-development")
