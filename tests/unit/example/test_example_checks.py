"""The fixture, and how the outcome of its tests is judged."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from coding_agent.artifacts import Artifacts, Pair, fixture
from coding_agent.checks import SubprocessChecker, require_baseline, require_success
from coding_agent.failures import ExampleFailed
from coding_agent.programs import Ended, execute

GOOD_END = "\nRan 4 tests in 0.001s\n\nOK\n"


def repaired(source: bytes) -> bytes:
    return source.replace(b"price + quantity", b"price * quantity").replace(b"goods > FREE", b"goods >= FREE")


def run(tmp_path: Path, source: bytes) -> Ended:
    folder = Artifacts(tmp_path, (os.getuid(), os.getgid())).stage("code", Pair(source, fixture().tests))
    return asyncio.run(SubprocessChecker().run(folder))


def test_the_fixture_fails_three_of_four_tests_and_has_two_bugs(tmp_path: Path) -> None:
    source = fixture().source
    require_baseline(run(tmp_path, source))
    require_success(run(tmp_path, repaired(source)))
    for half in (source.replace(b"price + quantity", b"price * quantity"), source.replace(b"goods > F", b"goods >= F")):
        assert half != source
        with pytest.raises(ExampleFailed, match="FAILED"):
            require_success(run(tmp_path, half))


def test_a_module_that_does_not_even_load_is_no_baseline(tmp_path: Path) -> None:
    with pytest.raises(ExampleFailed, match="does not fail as it should"):
        require_baseline(run(tmp_path, b"import nothing_of_this_name\n"))


@pytest.mark.parametrize(
    "ended",
    [
        Ended(0, "\nRan 4 tests in 0.001s\n\nFAILED (failures=3)\n"),
        Ended(1, "\nRan 4 tests in 0.001s\n\nFAILED (failures=2, errors=1)\n"),
        Ended(1, "\nRan 3 tests in 0.001s\n\nFAILED (failures=3)\n"),
        Ended(1, ""),
    ],
)
def test_other_failures_are_no_baseline(ended: Ended) -> None:
    with pytest.raises(ExampleFailed):
        require_baseline(ended)


@pytest.mark.parametrize(
    "ended",
    [
        Ended(1, GOOD_END),
        Ended(0, "\nRan 4 tests in 0.001s\n\nOK (skipped=1)\n"),
        Ended(0, "\nRan 3 tests in 0.001s\n\nOK\n"),
        Ended(0, f"{GOOD_END}and more\n"),
        Ended(0, ""),
    ],
)
def test_anything_but_four_passes_is_no_success(ended: Ended) -> None:
    require_success(Ended(0, GOOD_END))
    with pytest.raises(ExampleFailed):
        require_success(ended)


def test_a_module_under_test_sees_no_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MANGO_API_KEY", "sk-secret")
    ended = run(tmp_path, b"import os\nprint(sorted(os.environ))\n")
    assert "PATH" in ended.output
    assert "MANGO" not in ended.output


def test_a_program_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    with pytest.raises(ExampleFailed, match=r"longer than 0\.2 s"):
        asyncio.run(execute(["sleep", "60"], seconds=0.2))
    with pytest.raises(ExampleFailed, match="cannot be started"):
        asyncio.run(execute([str(tmp_path / "nothing")], seconds=1))
