"""Programs written against the stock client, with nothing changed but the address and the key."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from anthropic import Anthropic, AsyncAnthropic

from tests.support.deployment import KEY, Deployment
from tests.support.emulated import PROFILES, EmulatedDeployment


@pytest.fixture(scope="module", params=PROFILES)
def deployment(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deployment | EmulatedDeployment]:
    """The offline model thinks for its usual second, as programs that open the stream late expect (decision 28)."""
    folder = tmp_path_factory.mktemp("programs") / "data"
    with PROFILES[request.param](folder, "offline", think_seconds=1.0) as running:
        yield running


def open_stream_then_send(client: Anthropic) -> list[str]:
    """Create, open the stream, send, read to idle."""
    agent = client.beta.agents.create(name="Echo", model="claude-opus-5", system="Repeat what you hear.")
    environment = client.beta.environments.create(name="Desk", config={"type": "self_hosted"})
    session = client.beta.sessions.create(agent=agent.id, environment_id=environment.id, title="First")
    seen: list[str] = []
    with client.beta.sessions.events.stream(session.id) as stream:
        client.beta.sessions.events.send(
            session.id,
            events=[{"type": "user.message", "content": [{"type": "text", "text": "good morning"}]}],
        )
        for event in stream:
            seen.append(event.type)
            if event.type == "agent.message":
                assert event.content[0].type == "text"
                assert event.content[0].text == "echo: good morning"
            if event.type == "session.status_idle":
                break
    client.beta.sessions.archive(session.id)
    client.beta.agents.archive(agent.id)
    client.beta.environments.archive(environment.id)
    return seen


def send_then_open_stream(client: Anthropic) -> list[str]:
    """Send first, then stream; then read everything back from history."""
    agent = client.beta.agents.create(name="Echo", model="claude-opus-5")
    environment = client.beta.environments.create(name="Desk")
    session = client.beta.sessions.create(
        agent={"type": "agent", "id": agent.id, "version": agent.version}, environment_id=environment.id
    )
    client.beta.sessions.events.send(
        session.id, events=[{"type": "user.message", "content": [{"type": "text", "text": "late"}]}]
    )
    with client.beta.sessions.events.stream(session.id) as stream:
        for event in stream:
            if event.type == "session.status_idle":
                assert event.stop_reason.type == "end_turn"
                break
    history: list[str] = [event.type for event in client.beta.sessions.events.list(session.id, limit=2)]
    assert client.beta.sessions.retrieve(session.id).status == "idle"
    assert session.id in {found.id for found in client.beta.sessions.list()}
    assert client.beta.sessions.delete(session.id).type == "session_deleted"
    return history


TURN = [
    "user.message",
    "session.status_running",
    "session.thread_status_running",
    "span.model_request_start",
    "agent.message",
    "span.model_request_end",
    "session.thread_status_idle",
    "session.usage",
    "session.status_idle",
]


def test_program_that_opens_the_stream_first(deployment: Deployment) -> None:
    assert open_stream_then_send(deployment.client()) == TURN


def test_program_that_sends_first(deployment: Deployment) -> None:
    assert send_then_open_stream(deployment.client()) == TURN


def test_the_key_may_come_in_the_older_header(deployment: Deployment) -> None:
    with Anthropic(
        base_url=deployment.url,
        auth_token="ignored",
        default_headers={"x-api-key": KEY, "authorization": f"bearer {KEY}"},
        _strict_response_validation=True,
    ) as client:
        assert client.beta.agents.list(limit=1).data is not None


async def converse(client: AsyncAnthropic) -> list[str]:
    agent = await client.beta.agents.create(name="Echo", model="claude-opus-5")
    environment = await client.beta.environments.create(name="Desk")
    session = await client.beta.sessions.create(agent=agent.id, environment_id=environment.id)
    seen: list[str] = []
    async with await client.beta.sessions.events.stream(session.id) as stream:
        await client.beta.sessions.events.send(
            session.id, events=[{"type": "user.message", "content": [{"type": "text", "text": "hello"}]}]
        )
        async for event in stream:
            seen.append(event.type)
            if event.type == "session.status_idle":
                break
    return seen


def test_asynchronous_program(deployment: Deployment) -> None:
    async def run() -> list[str]:
        async with deployment.async_client() as client:
            return await converse(client)

    assert asyncio.run(run()) == TURN


def test_deleting_a_session_ends_its_open_stream(deployment: Deployment) -> None:
    client = deployment.client()
    agent = client.beta.agents.create(name="Echo", model="claude-opus-5")
    environment = client.beta.environments.create(name="Desk")
    session = client.beta.sessions.create(agent=agent.id, environment_id=environment.id)
    with client.beta.sessions.events.stream(session.id) as stream:
        client.beta.sessions.delete(session.id)
        assert [event.type for event in stream] == ["session.deleted"]
