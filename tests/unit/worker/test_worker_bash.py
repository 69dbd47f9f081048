"""The bash tool."""

import os
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from mango_worker.tools.base import Cancel
from mango_worker.tools.bash import SHELL_ENDED
from mango_worker.tools.environment import tool_environment
from mango_worker.tools.toolset import Toolset
from tests.unit.worker.conftest import Run, text_of


def alive(marker: str) -> list[str]:
    """Processes with `marker` among their arguments."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                arguments = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if marker.encode() in arguments:
                found.append(arguments.decode())
    return found


@pytest.fixture
def marker() -> Iterator[str]:
    """A unique number of seconds to sleep, by which a process can be found again."""
    value = f"9{uuid.uuid4().int % 10**12}"
    yield value
    assert alive(value) == []


def test_state_stays_from_call_to_call(run: Run, workspace: Path) -> None:
    assert text_of(run("bash", command="pwd")) == f"{workspace}\n"
    run("bash", command="mkdir d; cd d; export A=1; B=2; f() { echo f$1; }; alias x=y; shopt -s extglob")
    assert text_of(run("bash", command="pwd; echo $A $B; f 3; sh -c 'echo $A'")) == f"{workspace}/d\n1 2\nf3\n1\n"


def test_output_is_merged_in_order_and_input_is_empty(run: Run) -> None:
    assert text_of(run("bash", command="echo a; echo b >&2; echo c; cat; read x; echo $?")) == "a\nb\nc\n1\n"


def test_no_output_says_so(run: Run) -> None:
    assert text_of(run("bash", command="true")) == "(no output)"
    assert text_of(run("bash", command="")) == "(no output)"


def test_a_status_other_than_zero_is_an_error_with_the_code_last(run: Run) -> None:
    result = run("bash", command="printf out; (exit 3)")
    assert result.is_error and text_of(result) == "out\nexit code: 3"
    missing = run("bash", command="no-such-command-here")
    assert missing.is_error and text_of(missing).endswith("command not found\nexit code: 127")


@pytest.mark.parametrize("command", ["if", "echo 'unbalanced", "a b) c", "cat <<X", ")", "}", "for", "\\"])
def test_broken_syntax_does_not_wedge_the_shell(run: Run, command: str) -> None:
    run("bash", command="A=kept")
    run("bash", command=command)
    assert text_of(run("bash", command="echo $A")) == "kept\n"


def test_text_of_every_kind_arrives_as_it_is(run: Run) -> None:
    awkward = "'\"$HOME`\\\n\t!é\U0001f378 %s"
    run("write", file_path="x", content=awkward)
    assert text_of(run("bash", command="cat x")) == awkward
    assert text_of(run("bash", command="cat <<'END'\n'\"$HOME`\nEND\n")) == "'\"$HOME`\n"


def test_a_command_of_a_megabyte(run: Run) -> None:
    assert text_of(run("bash", command=f"echo {'x' * 1_000_000} | wc -c")) == "1000001\n"


@pytest.mark.parametrize("command", ["head -c 1000 /dev/urandom", r"printf '\xf0'", r"printf '\xed\xa0\x80\0x'"])
def test_output_that_is_no_text_becomes_text(run: Run, command: str) -> None:
    text = text_of(run("bash", command=command))
    assert text and "\x00" not in text


def test_halves_of_a_surrogate_pair_in_a_command(run: Run) -> None:
    assert text_of(run("bash", command="echo \ud99c")) == "\ufffd\n"
    assert text_of(run("bash", command="echo \ud83c" + "\udf78")) == "\U0001f378\n"


def test_colours_and_carriage_returns_are_removed(run: Run) -> None:
    assert text_of(run("bash", command=r"printf '\e[31mred\e[0m\r\n'")) == "red\n"


def test_the_end_of_long_output_is_kept(run: Run) -> None:
    text = text_of(run("bash", command="seq 1 100000"))
    mark, _, rest = text.partition("\n")
    assert mark == "[output truncated at 100000 bytes]"
    assert rest.endswith("99999\n100000\n") and len(rest) == 100_000


@pytest.mark.parametrize("command", ["sleep {} & echo done", "(sleep {} &) ; echo done", "setsid sleep {} & echo done"])
def test_a_background_job_is_not_waited_for(run: Run, tools: Toolset, marker: str, command: str) -> None:
    before = time.monotonic()
    assert text_of(run("bash", command=command.format(marker))) == "done\n"
    assert time.monotonic() - before < 1.0
    while not alive(marker):
        assert time.monotonic() - before < 10
        time.sleep(0.01)
    tools.close()


def test_a_chatty_background_job_neither_blocks_nor_is_waited_for(run: Run, workspace: Path) -> None:
    run("bash", command="(head -c 500000 /dev/zero | tr '\\0' x; touch finished) &")
    deadline = time.monotonic() + 10
    while not (workspace / "finished").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(
    "command",
    [
        "sleep {}",
        "trap '' TERM INT HUP; sleep {}",
        "setsid sleep {} & setsid -f sleep {}; wait; sleep {}",
        "(trap '' TERM; (sleep {} &) ; env -i sleep {}) & sleep {}",
        'nohup sleep {} >/dev/null 2>&1 & python3 -c \'import os; os.fork() or os.setsid() or os.execlp("sleep", '
        '"sleep", "{}")\'; sleep {}',
        "exec sleep {}",
    ],
)
def test_a_time_out_kills_the_whole_tree(run: Run, marker: str, command: str) -> None:
    before = time.monotonic()
    result = run("bash", command=f"echo begun; A=1; {command.replace('{}', marker)}", timeout_ms=400)
    assert time.monotonic() - before < 3.4
    assert result.is_error
    assert text_of(result).startswith("begun\n[timed out] the command ran longer than 0.4 s")
    assert alive(marker) == []
    assert text_of(run("bash", command="echo fresh$A")) == "fresh\n"


# A fork bomb is tested in a container only (tests/docker): as root `ulimit -u` bounds nothing, and without a pids
# limit it takes the whole machine down.


def test_a_flood_of_output_is_bounded(run: Run) -> None:
    before = time.monotonic()
    result = run("bash", command="yes", timeout_ms=500)
    assert time.monotonic() - before < 3.5
    assert len(text_of(result)) < 101_000 and "[timed out]" in text_of(result)


def test_a_shell_that_exits_reports_its_status_and_is_replaced(run: Run, marker: str) -> None:
    result = run("bash", command="echo bye; A=1; exit 7")
    assert result.is_error and text_of(result) == f"bye\n{SHELL_ENDED}\nexit code: 7"
    assert text_of(run("bash", command="echo fresh$A")) == "fresh\n"
    assert text_of(run("bash", command=f"trap '' TERM; sleep {marker} & exit")) == SHELL_ENDED
    assert text_of(run("bash", command="kill -9 $$")).endswith("exit code: 137")
    assert text_of(run("bash", command="set -e; echo ok")) == "ok\n"
    assert text_of(run("bash", command="false")).endswith("exit code: 1")
    assert text_of(run("bash", command="echo fresh")) == "fresh\n"


def test_restart(run: Run, marker: str) -> None:
    run("bash", command=f"A=1; sleep {marker} &")
    assert text_of(run("bash", restart=True)) == "bash session restarted"
    assert alive(marker) == []
    assert text_of(run("bash", command="echo x$A")) == "x\n"
    assert text_of(run("bash", command="B=1; echo x$B", restart=True)) == "x1\n"


def test_redirecting_the_shell_itself_cannot_hide_the_end_of_a_command(run: Run, workspace: Path) -> None:
    run("bash", command="exec >log 2>&1; echo hidden")
    assert (workspace / "log").read_text() == "hidden\n"
    assert text_of(run("bash", command="echo seen")) == "seen\n"
    assert text_of(run("bash", command='for f in 3 4 5 6 7 8 9; do eval "exec $f>&-"; done; echo closed')) == "closed\n"
    assert text_of(run("bash", command="echo seen")) == "seen\n"


def test_tracing_does_not_show_our_framing(run: Run) -> None:
    run("bash", command="set -x")
    assert text_of(run("bash", command="echo a")) == "++ echo a\na\n"


def test_cancelling_takes_less_than_a_second(run: Run, marker: str) -> None:
    cancel = Cancel()
    timer = threading.Timer(0.2, cancel.throw, ["interrupted by the user"])
    timer.start()
    before = time.monotonic()
    result = run("bash", cancel, command=f"sleep {marker}")
    timer.join()
    assert time.monotonic() - before < 1.2
    assert result.is_error and text_of(result).startswith("[interrupted by the user]")


@pytest.mark.parametrize(
    "arguments",
    [
        {}, {"command": None}, {"command": 5}, {"command": ["ls"]}, {"command": "a\x00b"}, {"restart": "yes"},
        {"command": "true", "timeout_ms": -1}, {"command": "true", "timeout_ms": "5"},
        {"command": "true", "timeout_ms": 0.5},
        {"command": "true", "timeout_ms": True}, {"command": "true", "unknown": 1},
    ],
)  # fmt: skip
def test_bad_input_is_an_error_result(run: Run, arguments: dict[str, object]) -> None:
    result = run("bash", **arguments)
    assert result.is_error and text_of(result).startswith("bash: ")


@pytest.mark.parametrize("values", [None, "ls", 5, [], True])
def test_input_that_is_no_object(tools: Toolset, values: object) -> None:
    assert tools.run("bash", values, Cancel()).is_error


def test_no_credential_reaches_a_command(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MANGO_ENVIRONMENT_KEY", "mango_lower", "ANTHROPIC_API_KEY", "BASH_ENV"):
        monkeypatch.setenv(name, "planted")
    tools = Toolset(str(workspace))
    try:
        assert "planted" not in text_of(tools.run("bash", {"command": "env"}, Cancel()))
    finally:
        tools.close()
    assert "planted" not in str(tool_environment())


def test_hundreds_of_finished_jobs_leave_no_zombies(run: Run) -> None:
    run("bash", command="for i in $(seq 200); do (true &) ; done; sleep 0.2")
    run("bash", command="true")
    mine = subprocess.run(
        ["ps", "-o", "stat=", "--ppid", str(os.getpid())], capture_output=True, text=True, check=False
    )
    assert mine.stdout.count("Z") == 0


def test_the_same_shell_through_a_thousand_short_calls(run: Run) -> None:
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    for number in range(300):
        assert text_of(run("bash", command=f"echo {number}")) == f"{number}\n"
    for _ in range(5):
        run("bash", command="exit")
    run("bash", command="true")
    assert len(list(Path("/proc/self/fd").iterdir())) <= descriptors + 8
