"""scripts/with-dev-env hands settings over literally, and refuses files that others may read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts/with-dev-env"
SHOW = [sys.executable, "-c", "import json, os; print(json.dumps(dict(os.environ)))"]


def run(home: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), **variables}
    return subprocess.run(
        [sys.executable, str(SCRIPT), *command], env=environment, capture_output=True, text=True, timeout=30
    )


def settings(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / ".config/mango/dev.env"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def test_values_arrive_as_they_are_written(tmp_path: Path) -> None:
    expected = {
        "MANGO_MODEL_ID": "some-model",
        "QUOTED": '"a b"',
        "EXPANDED": "$HOME `id` \\n",
        "EQUALS": "a=b=",
        "SPACES": "  kept  ",
        "EMPTY": "",
    }
    lines = "\n".join(f"{name}={value}" for name, value in expected.items())
    settings(tmp_path, f"# a comment\n\n   # another\n{lines}\n")
    done = run(tmp_path, *SHOW)
    assert done.returncode == 0, done.stderr
    got = json.loads(done.stdout)
    assert {name: got.get(name) for name in expected} == expected


def test_the_file_wins_over_the_environment(tmp_path: Path) -> None:
    settings(tmp_path, "MANGO_MODEL_ID=from-the-file\n")
    done = run(tmp_path, *SHOW, MANGO_MODEL_ID="from-outside")
    assert json.loads(done.stdout)["MANGO_MODEL_ID"] == "from-the-file"


def test_another_file_can_be_named(tmp_path: Path) -> None:
    elsewhere = settings(tmp_path, "CHOSEN=yes\n").rename(tmp_path / "other.env")
    done = run(tmp_path, *SHOW, MANGO_ENV_FILE=str(elsewhere))
    assert json.loads(done.stdout)["CHOSEN"] == "yes"


def test_without_the_usual_file_the_command_runs_all_the_same(tmp_path: Path) -> None:
    assert run(tmp_path, *SHOW).returncode == 0


def test_a_file_that_was_named_must_be_there(tmp_path: Path) -> None:
    done = run(tmp_path, *SHOW, MANGO_ENV_FILE=str(tmp_path / "missing.env"))
    assert done.returncode == 1
    assert "missing.env" in done.stderr


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o700, 0o400])
def test_a_file_of_another_mode_is_refused(tmp_path: Path, mode: int) -> None:
    settings(tmp_path, "SECRET=hush\n", mode)
    done = run(tmp_path, *SHOW)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "600" in done.stderr or "Permission denied" in done.stderr


@pytest.mark.parametrize(
    "line", ["hush-without-equals", "=hush", "1NAME=hush", "export NAME=hush", "NA-ME=hush", "NAME =hush"]
)
def test_a_malformed_line_is_refused_by_number_without_showing_it(tmp_path: Path, line: str) -> None:
    settings(tmp_path, f"FINE=yes\n{line}\n")
    done = run(tmp_path, *SHOW)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "dev.env:2:" in done.stderr
    assert "hush" not in done.stderr


def test_the_command_takes_the_place_of_the_script(tmp_path: Path) -> None:
    done = run(tmp_path, "sh", "-c", 'echo "$1"; exit 7', "sh", "an argument")
    assert (done.returncode, done.stdout) == (7, "an argument\n")


def test_an_unknown_command_is_said_to_be_one(tmp_path: Path) -> None:
    done = run(tmp_path, "no-such-command-anywhere")
    assert done.returncode == 127
    assert "no-such-command-anywhere" in done.stderr


def test_no_command_is_a_mistake_of_use(tmp_path: Path) -> None:
    assert run(tmp_path).returncode == 2
