from __future__ import annotations

import asyncio
import json

import pytest

from mango.domain.principal import Credential, Principal
from mango.stream.opening import Target, target_of
from tests.unit.stream.watching import NEVER, SESSION, THREAD, Client, World


def test_knows_its_paths() -> None:
    assert target_of("/v1/sessions/sesn_1/events/stream") == Target("sesn_1")
    assert target_of("/v1/sessions/sesn_1/threads/sthr_1/stream") == Target("sesn_1", "sthr_1")
    for path in ("/v1/sessions/sesn_1/events", "/v1/sessions/a/b/events/stream", "/v1/sessions//events/stream"):
        assert target_of(path) is None


@pytest.mark.parametrize(
    ("path", "query", "headers", "status"),
    [
        ("/v1/sessions/sesn_02/events/stream", "", {}, 404),
        ("/v1/sessions/agent_01/events/stream", "", {}, 404),
        ("/v1/sessions/sesn_%23/events/stream", "", {}, 404),
        (f"/v1/sessions/{SESSION}/threads/sthr_02/stream", "", {}, 404),
        (f"/v1/sessions/{SESSION}/threads/{THREAD}#1/stream", "", {}, 404),
        (f"/v1/sessions/{SESSION}/threads/{THREAD}/stream", "", {}, 200),
        ("", "", {"authorization": "nobody"}, 401),
        ("", "", {"authorization": "foreign"}, 404),
        ("", "", {"authorization": "other environment"}, 404),
        ("", "", {"authorization": "own environment"}, 200),
        ("", "", {"authorization": "other work"}, 403),
        ("", "event_deltas%5B%5D=agent.message&event_deltas%5B%5D=agent.thinking&beta=true", {}, 200),
        ("", "event_deltas[]=agent.tool_use", {}, 400),
        ("", "&".join(["event_deltas[]=agent.message"] * 101), {}, 400),
        ("", "follow=1", {}, 400),
        ("", "after=now", {}, 400),
        ("", "after=2.0", {}, 200),
        ("", "after=2.1", {}, 400),
        ("", "", {"last_event_id": "nonsense"}, 400),
        ("", "", {"last_event_id": "999.0"}, 400),
    ],
)
def test_answers_before_it_streams(path: str, query: str, headers: dict[str, str], status: int) -> None:
    async def scenario() -> None:
        world = World(NEVER)
        world.principals |= {
            "foreign": Principal(Credential.WORKSPACE, "wrkspc_2", "key_2"),
            "other environment": Principal(Credential.ENVIRONMENT, "wrkspc_1", "key_3", "env_2"),
            "own environment": Principal(Credential.ENVIRONMENT, "wrkspc_1", "key_3", "env_1"),
            "other work": Principal(Credential.WORK, "wrkspc_1", "work_2", "env_1", "sesn_02", "work_2", 1, "x"),
        }
        world.append("user.message")
        async with Client(world.app(), path, query, **headers) as client:
            assert client.status == status
            if status != 200:
                await client.ended()
                body = json.loads(client.raw)
                assert body["type"] == "error"
                assert body["request_id"] == client.headers["request-id"]
                assert client.headers["content-type"] == "application/json"
        assert world.hub.subscribers == 0

    asyncio.run(scenario())
