from __future__ import annotations

from pathlib import Path

import pytest

from mango.services import keys
from mango.services.bootstrap import give_key
from mango_local.access import DEVELOPMENT_KEY, Key, KeyRefused, bootstrap_key, check_opens
from tests.support.world import World
from tests.unit.local.running import mango

CANARY = "canary"


@pytest.mark.parametrize("environ", [{}, {"MANGO_API_KEY": ""}, {"MANGO_API_KEY": " \n"}], ids=str)
def test_without_a_key_it_is_the_one_that_everybody_knows(environ: dict[str, str]) -> None:
    assert bootstrap_key(environ).development


def test_takes_a_key_that_can_work() -> None:
    for token in (f"{CANARY}-0123456789", "~!#$%&'*+.^_`|{}=/", CANARY + "x" * (keys.MAX_TOKEN - len(CANARY))):
        key = bootstrap_key({"MANGO_API_KEY": f" {token}\n"})
        assert (key.token, key.development) == (token, False)
        assert CANARY not in repr(key)
    assert bootstrap_key({"MANGO_API_KEY": DEVELOPMENT_KEY}).development


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        (f"sess_mango_{CANARY}0123456789", "sess_mango_"),
        (CANARY + "x" * keys.MAX_TOKEN, "longer than 1024"),
        (f"{CANARY} 0123456789", "space"),
        (f"{CANARY}\t0123456789", "control"),
        (f"Bearer {CANARY}-0123456789", "space"),
        (f"{CANARY}\x000123456789", "control"),
        (f"{CANARY}\x7f0123456789", "control"),
        (f"{CANARY}-ü-0123456789", "ASCII"),
        (f"{CANARY}-\udcff-0123456789", "ASCII"),
        (f"{CANARY}\xa00123456789", "ASCII"),
        (f"{CANARY}-789012345"[:15], "shorter than 16"),
        (f"{DEVELOPMENT_KEY}-{CANARY}", "everybody knows"),
    ],
)
def test_refuses_a_key_that_never_could_and_does_not_say_it(token: str, reason: str) -> None:
    with pytest.raises(KeyRefused, match=reason) as refused:
        bootstrap_key({"MANGO_API_KEY": token})
    assert "MANGO_API_KEY" in str(refused.value)
    assert CANARY not in str(refused.value)


@pytest.mark.parametrize("command", ["up", "serve"])
def test_it_is_told_at_start(tmp_path: Path, command: str) -> None:
    with mango(tmp_path, command, "--port", "0", MANGO_API_KEY=f"sess_mango_{CANARY}01234567") as refused:
        assert refused.process.wait(20) == 1
        (line,) = refused.output.splitlines()
        assert line.startswith("mango: MANGO_API_KEY begins with")
        assert CANARY not in line


def test_refuses_a_key_that_the_store_knows_better() -> None:
    ctx = World().ctx
    revoked = keys.create_key(ctx, keys.DEFAULT_WORKSPACE, "app")
    keys.revoke(ctx, keys.DEFAULT_WORKSPACE, revoked.shown["id"])
    give_key(ctx, revoked.token)
    with pytest.raises(KeyRefused, match="revoked"):
        check_opens(ctx, Key(revoked.token))
    own = keys.create_key(ctx, keys.DEFAULT_WORKSPACE, "app")
    check_opens(ctx, Key(own.token))
