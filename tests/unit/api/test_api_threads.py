"""Requests that run at once get their own answers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.unit.api.desk import Desk


def test_no_request_sees_another(desk: Desk) -> None:
    names = [f"agent {n}" for n in range(40)]
    ids = {name: desk.agent(name=name)["id"] for name in names}

    def ask(name: str) -> bool:
        seen = desk.get(f"/v1/agents/{ids[name]}").json
        lost = desk.get(f"/v1/agents/{ids[name]}x")
        return bool(seen["name"] == name and ids[name] in lost.error[2])

    with ThreadPoolExecutor(32) as pool:
        assert all(pool.map(ask, names * 10))
