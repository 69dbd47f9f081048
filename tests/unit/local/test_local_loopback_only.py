from __future__ import annotations

import asyncio

import httpx
import pytest

from mango.api.asgi import create_asgi
from mango.services import keys
from mango_local.access import DEVELOPMENT_KEY
from mango_local.loopback_only import KeepDevelopmentKeyHome
from tests.unit.api.desk import Desk
from tests.unit.stream.watching import World

OWN = "sk-mango-of-my-own"
BRIDGE = "http://172.17.0.1:8080"
PATHS = ["/v1/agents", "/v1/files", "/v1/sessions/sesn_01/events/stream", "/v1/nothing"]


def ask(base: str, method: str = "GET", path: str = "/v1/agents", **request: object) -> httpx.Response:
    """An answer of the guarded application to a request that came in at the address of `base`."""

    async def scenario() -> httpx.Response:
        desk = Desk()
        keys.ensure_key(desk.ctx, OWN)
        app = KeepDevelopmentKeyHome(create_asgi(desk.ctx, desk.api, World().app()))
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=base) as client:
            return await client.request(method, path, **request)  # type: ignore[arg-type]

    return asyncio.run(scenario())


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_elsewhere_the_development_key_is_refused(method: str, path: str) -> None:
    answer = ask(BRIDGE, method, path, headers={"x-api-key": DEVELOPMENT_KEY}, content=b"x" * 300_000)
    assert answer.status_code == 403
    body = answer.json()
    assert (body["type"], body["error"]["type"]) == ("error", "permission_error")
    assert body["request_id"] == answer.headers["request-id"]
    assert "MANGO_API_KEY" in body["error"]["message"]
    assert "http://127.0.0.1:8080" in body["error"]["message"]


@pytest.mark.parametrize(
    "headers",
    [
        [("authorization", f"Bearer {DEVELOPMENT_KEY}")],
        [("Authorization", f"bearer   {DEVELOPMENT_KEY} ")],
        [("X-API-Key", f" {DEVELOPMENT_KEY}\t")],
        [("x-api-key", f"\xa0{DEVELOPMENT_KEY}\x85")],
        [("x-api-key", OWN), ("x-api-key", DEVELOPMENT_KEY)],
        [("x-api-key", DEVELOPMENT_KEY), ("x-api-key", OWN)],
        [("authorization", f"Bearer {DEVELOPMENT_KEY}"), ("x-api-key", OWN)],
    ],
    ids=str,
)
def test_however_it_is_sent(headers: list[tuple[str, str]]) -> None:
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    assert ask(BRIDGE, headers=raw).status_code == 403


@pytest.mark.parametrize("address", ["172.17.0.1", "0.0.0.0", "192.0.2.2", "[fe80::1]", "[fd00::2]", "localhost.x"])
def test_on_every_other_address(address: str) -> None:
    assert ask(f"http://{address}:8080", headers={"x-api-key": DEVELOPMENT_KEY}).status_code == 403


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.9", "[::1]"])
def test_at_home_it_opens_everything(address: str) -> None:
    assert ask(f"http://{address}:8080", headers={"x-api-key": DEVELOPMENT_KEY}).status_code == 200


def test_other_credentials_pass_everywhere() -> None:
    for base in (BRIDGE, "http://127.0.0.1"):
        assert ask(base, headers={"x-api-key": OWN}).status_code == 200
        assert ask(base, headers={"x-api-key": "sess_mango_unknown"}).status_code == 401
        assert ask(base).status_code == 401
        assert ask(base, path="/healthz").status_code == 200
