from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import httpx
import pytest

from mango_local import guard
from tests.unit.local.running import KEY, Api, mango

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


def store_pid(folder: Path) -> int:
    return int((folder / ".mango" / "store.pid").read_text().split()[0])


def test_runs_a_turn_and_ends_cleanly_with_a_stream_open(tmp_path: Path) -> None:
    with mango(tmp_path, "up", "--port", "0") as up, Api(up.url()) as api:
        session = api.session()
        lines: list[str] = []
        opened = threading.Event()

        def follow() -> None:
            with api.http.stream("GET", f"/v1/sessions/{session}/events/stream") as response:
                opened.set()
                lines.extend(response.iter_lines())  # raises unless the server ends the response properly

        reader = threading.Thread(target=follow)
        reader.start()
        assert opened.wait(10)
        api.say(session, "hello")
        assert api.idle(session) == TURN
        pid = store_pid(tmp_path)
        began = time.monotonic()
        assert up.end() == 0
        assert time.monotonic() - began < 8
        reader.join(5)
        assert [line.removeprefix("event: ") for line in lines if line.startswith("event: ")] == TURN
        assert guard.started(pid) is None
        assert "error" not in up.output


def test_a_turn_survives_kill_9_and_goes_on_at_once(tmp_path: Path) -> None:
    with mango(tmp_path, "up", "--port", "0", MANGO_OFFLINE_THINK_SECONDS="30") as first, Api(first.url()) as api:
        session = api.session()
        api.say(session, "one")
        while "span.model_request_start" not in [event["type"] for event in api.events(session)]:
            time.sleep(0.02)
        api.say(session, "two")
        before = api.events(session)
        pid = store_pid(tmp_path)
        first.kill()
    with mango(tmp_path, "up", "--port", "0") as second, Api(second.url()) as api:
        assert guard.started(pid) is None
        types = api.idle(session, seconds=12)  # far less than the lease of 30 s
        after = api.events(session)
        assert [event["id"] for event in after][: len(before) - 1] == [event["id"] for event in before][:-1]
        assert types.count("user.message") == types.count("agent.message") == 2
        assert len({event["id"] for event in after}) == len(after)
        assert second.end() == 0


def test_a_round_under_way_holds_up_the_end_for_five_seconds_at_most(tmp_path: Path) -> None:
    with mango(tmp_path, "up", "--port", "0", MANGO_OFFLINE_THINK_SECONDS="60") as up, Api(up.url()) as api:
        session = api.session()
        api.say(session, "one")
        while "span.model_request_start" not in [event["type"] for event in api.events(session)]:
            time.sleep(0.02)
        began = time.monotonic()
        assert up.end(signal.SIGINT) == 0
        assert 4 < time.monotonic() - began < 14
        assert "left 1 round" in up.output


def test_the_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    with mango(tmp_path, "up", "--port", "0", MANGO_OFFLINE_THINK_SECONDS="60") as up, Api(up.url()) as api:
        session = api.session()
        api.say(session, "one")
        while "span.model_request_start" not in [event["type"] for event in api.events(session)]:
            time.sleep(0.02)
        pid = store_pid(tmp_path)
        up.process.send_signal(signal.SIGINT)
        up.says("once more to stop at once")
        time.sleep(0.3)
        began = time.monotonic()
        assert up.end(signal.SIGINT) == 130
        assert time.monotonic() - began < 3
        while guard.started(pid) is not None:
            time.sleep(0.01)
            assert time.monotonic() - began < 8


def test_the_store_may_die_under_it(tmp_path: Path) -> None:
    with mango(tmp_path, "up", "--port", "0") as up, Api(up.url()) as api:
        session = api.session()
        os.kill(store_pid(tmp_path), signal.SIGKILL)
        deadline = time.monotonic() + 10
        while api.http.get(f"/v1/sessions/{session}").status_code != 200:
            assert time.monotonic() < deadline
        api.say(session, "hello")
        assert api.idle(session) == TURN
        assert "the store is back" in up.output


def test_in_three_processes(tmp_path: Path) -> None:
    with mango(tmp_path, "store") as store:
        endpoint = store.says(r"store +(http://\S+),")
        with (
            mango(tmp_path, "serve", "--port", "0", "--store", endpoint) as serve,
            mango(tmp_path, "orchestrate") as orchestrate,
            Api(serve.url()) as api,
        ):
            orchestrate.says("runs turns")
            session = api.session()
            with api.http.stream("GET", f"/v1/sessions/{session}/events/stream") as response:
                began = time.monotonic()
                api.say(session, "hello")
                seen: list[str] = []
                for line in response.iter_lines():
                    if line.startswith("event: "):
                        seen.append(line.removeprefix("event: "))
                    if seen[-1:] == ["session.status_idle"]:
                        break
            assert seen == TURN
            assert time.monotonic() - began < 8
            orchestrate.kill()
            api.say(session, "more")
            with mango(tmp_path, "orchestrate"):
                assert api.idle(session, turns=2) == TURN * 2
            assert serve.end() == 0
        assert store.end() == 0


def test_tells_what_is_wrong(tmp_path: Path) -> None:
    with mango(tmp_path, "up", "--port", "0") as up:
        up.url()
        for arguments, wrong in (
            (["up", "--port", "0"], f"in use by process {up.process.pid}"),
            (["up", "--port", up.url().rpartition(":")[2], "--data-dir", "other"], "another process uses it"),
            (["up", "--host", "0.0.0.0", "--data-dir", "other"], "MANGO_API_KEY"),
            (["up", "--model", "scripted:nothing", "--data-dir", "other"], "scripted:nothing"),
            (["serve", "--data-dir", "nowhere"], "no store is known"),
            (["orchestrate", "--store", "nonsense"], "no address of a store"),
        ):
            with mango(tmp_path, *arguments) as other:
                assert other.process.wait(20) == 1
                assert wrong in other.output
                assert "Traceback" not in other.output


@pytest.mark.parametrize("command", ["up", "store"])
@pytest.mark.parametrize(
    "place", ["file", "file/below", "/proc/mango", "data/endpoint", "data/store.log", "data/store"]
)
def test_a_place_where_nothing_can_be_kept_is_one_line(tmp_path: Path, command: str, place: str) -> None:
    (tmp_path / "file").write_text("mine")
    data_dir, _, taken = place.partition("/") if place.startswith("data/") else (place, "", "")
    if taken == "store":
        (tmp_path / "data").mkdir()
        (tmp_path / place).write_text("no directory")
    elif taken:
        (tmp_path / place).mkdir(parents=True)
    with mango(tmp_path, command, *(["--port", "0"] if command == "up" else []), "--data-dir", data_dir) as refused:
        assert refused.process.wait(20) == 1
        assert refused.output.startswith("mango: ")
        assert "Traceback" not in refused.output
        if taken != "store":  # then it is the store's own words that tell
            (line,) = refused.output.splitlines()
            assert "--data-dir" in line


@pytest.mark.parametrize("junk", [b"\xff\xfe", b"http://127.0.0.1:99999"], ids=str)
def test_a_damaged_address_of_the_store_stops_nobody_for_good(tmp_path: Path, junk: bytes) -> None:
    folder = tmp_path / ".mango"
    folder.mkdir()
    (folder / "endpoint").write_bytes(junk)
    for command in (["serve", "--port", "0"], ["orchestrate"]):
        with mango(tmp_path, *command) as refused:
            assert refused.process.wait(20) == 1
            (line,) = refused.output.splitlines()
            assert line.startswith("mango: no store is known")
            assert "--store" in line
    with mango(tmp_path, "up", "--port", "0") as up:
        up.url()
        assert up.end() == 0


def test_an_own_key_replaces_the_one_that_everybody_knows(tmp_path: Path) -> None:
    own, next_one = "sk-mango-of-my-own", "sk-mango-of-my-own-too"

    def answers(base: str) -> list[int]:
        keys = (own, next_one, KEY)
        return [httpx.get(f"{base}/v1/agents", headers={"x-api-key": key}).status_code for key in keys]

    with mango(tmp_path, "up", "--port", "0") as up:
        assert answers(up.url()) == [401, 401, 200]
        assert up.end() == 0
    with mango(tmp_path, "up", "--port", "0", MANGO_API_KEY=own) as up:
        assert answers(up.url()) == [200, 401, 401]
        assert own not in up.output
        assert up.end() == 0
    with mango(tmp_path, "up", "--port", "0", MANGO_API_KEY=next_one) as up:
        assert answers(up.url()) == [401, 200, 401]
        assert up.end() == 0
    with mango(tmp_path, "up", "--port", "0") as up:
        assert answers(up.url()) == [401, 401, 200]
