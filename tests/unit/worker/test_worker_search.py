"""The tools glob and grep."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mango_worker.tools.base import Arguments, Cancel, Cancelled, ToolError
from mango_worker.tools.grep import Grep
from mango_worker.tools.patterns import Pattern, expand_braces
from mango_worker.tools.workspace import Workspace
from tests.unit.worker.conftest import Run, text_of

GrepFor = Callable[..., str]


def make(root: Path, *names: str, content: str = "x") -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def found(run: Run, root: Path, pattern: str, **more: str) -> list[str]:
    text = text_of(run("glob", pattern=pattern, **more))
    return [] if text == "no matches" else sorted(os.path.relpath(line, root) for line in text.splitlines())


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.py", ["a.py"]),
        ("**/*.py", ["a.py", "m/b.py", "m/n/c.py"]),
        ("m/**/*.py", ["m/b.py", "m/n/c.py"]),
        ("m/**/n/**/c.py", ["m/n/c.py"]),
        ("**", [".github/workflows/ci.yml", ".hidden", "a.py", "dist/a.js", "m/b.py", "m/n/c.py"]),
        ("**/**/*.py", ["a.py", "m/b.py", "m/n/c.py"]),
        (".github/workflows/*.yml", [".github/workflows/ci.yml"]),
        ("**/*.yml", [".github/workflows/ci.yml"]),
        ("dist/a.js", ["dist/a.js"]),
        ("./dist/*", ["dist/a.js"]),
        (".hid*", [".hidden"]),
        ("?.py", ["a.py"]),
        ("[!b].py", ["a.py"]),
        ("**/*.{js,yml}", [".github/workflows/ci.yml", "dist/a.js"]),
        (".git/config", [".git/config"]),
        ("nothing/**", []),
        ("m", []),
    ],
)
def test_patterns(run: Run, workspace: Path, pattern: str, expected: list[str]) -> None:
    make(workspace, "a.py", "m/b.py", "m/n/c.py", ".hidden", ".github/workflows/ci.yml", "dist/a.js", ".git/config")
    make(workspace, ".gitignore", content="dist\n")
    (workspace / ".gitignore").rename(workspace / ".git" / "ignore-me")
    assert found(run, workspace, pattern) == expected


def test_a_directory_to_search_in(run: Run, workspace: Path) -> None:
    make(workspace, "a.py", "m/b.py")
    assert found(run, workspace, "*.py", path="m") == ["m/b.py"]
    assert found(run, workspace, "*.py", path=str(workspace / "m")) == ["m/b.py"]
    for bad in ("..", "/etc", "missing", "a.py"):
        assert run("glob", pattern="*", path=bad).is_error


@pytest.mark.parametrize("pattern", ["", "/etc/*", "../*", "a/../../*", "{a,b,c,d}" * 4])
def test_bad_patterns(run: Run, pattern: str) -> None:
    assert run("glob", pattern=pattern).is_error


def test_links_are_listed_but_not_entered(run: Run, workspace: Path) -> None:
    outside = workspace.parent / "outside"
    make(outside, "secret.txt")
    (workspace / "out").symlink_to(outside)
    (workspace / "round").symlink_to(workspace)
    assert found(run, workspace, "**/*.txt") == []


def test_the_newest_come_first_and_no_more_than_200(run: Run, workspace: Path) -> None:
    for number in range(301):
        make(workspace, f"many/{number}")
        os.utime(workspace / "many" / str(number), (number, number))
    make(workspace, "elsewhere")
    lines = text_of(run("glob", pattern="**")).splitlines()
    assert lines[0] == str(workspace / "elsewhere") and lines[1].endswith("/many/300")
    assert len(lines) == 201 and lines[-1] == "[200 newest of 302 files]"


def test_a_name_that_is_no_utf_8(run: Run, workspace: Path) -> None:
    (Path(os.fsdecode(os.fsencode(workspace) + b"/\xff.txt"))).touch()
    assert text_of(run("glob", pattern="*.txt")).endswith("/\ufffd.txt")


def test_a_pattern_of_many_stars_is_matched_in_no_time() -> None:
    before = time.monotonic()
    assert not Pattern("*a" * 40 + "b").matches(["a" * 250])
    assert not Pattern("**/a/" * 20 + "b").matches(["a"] * 60)
    assert time.monotonic() - before < 1


def test_braces() -> None:
    assert sorted(expand_braces("a{b,{c,d}}e{f,}")) == ["abe", "abef", "ace", "acef", "ade", "adef"]
    assert expand_braces("{a") == ["{a"] and expand_braces("{a}") == ["{a}"]
    with pytest.raises(ToolError):
        expand_braces("{a,b}" * 10)


@pytest.fixture(params=["ripgrep", "python"])
def grep(request: pytest.FixtureRequest, workspace: Path) -> GrepFor:
    tool = Grep(Workspace(str(workspace)), ripgrep=request.param == "ripgrep")

    def search(pattern: str, path: str | None = None, cancel: Cancel | None = None) -> str:
        arguments = Arguments({"pattern": pattern, "path": path}, tool.arguments)
        return text_of(tool.run(arguments, cancel or Cancel()))

    return search


def test_lines_that_match(grep: GrepFor, workspace: Path) -> None:
    make(workspace, "a/b.txt", content="one\r\ntwo: 2\nthree\n")
    make(workspace, ".hidden", content="two\n")
    assert grep("^t") == f"{workspace}/.hidden:1:two\n{workspace}/a/b.txt:2:two: 2\n{workspace}/a/b.txt:3:three"
    assert grep("one", "a") == f"{workspace}/a/b.txt:1:one"
    assert grep("three", "a/b.txt") == f"{workspace}/a/b.txt:3:three"
    assert grep("absent") == "no matches"
    assert grep("-t") == "no matches"


def test_what_is_not_searched(grep: GrepFor, workspace: Path) -> None:
    make(workspace, ".git/x", "node_modules/x", "sub/node_modules/x", content="needle\n")
    make(workspace, "build/x", content="needle\n")
    make(workspace, ".gitignore", content="build\n")
    (workspace / "binary").write_bytes(b"needle\0\n")
    make(workspace.parent / "outside", "x", content="needle\n")
    (workspace / "out").symlink_to(workspace.parent / "outside")
    (workspace / "file-link").symlink_to(workspace.parent / "outside" / "x")
    os.mkfifo(workspace / "fifo")
    assert grep("needle") == f"{workspace}/build/x:1:needle"
    assert grep("needle", "node_modules") == f"{workspace}/node_modules/x:1:needle"


def test_bad_expressions_and_places(grep: GrepFor) -> None:
    for pattern, path in (("(", None), ("x", "missing"), ("x", ".."), ("x", "/etc")):
        with pytest.raises(ToolError):
            grep(pattern, path)


def test_unreadable_files_are_passed_over(grep: GrepFor, workspace: Path) -> None:
    (workspace / "dangling").symlink_to("nowhere")
    assert grep("x") == "no matches"


def test_output_is_bounded(grep: GrepFor, workspace: Path) -> None:
    make(workspace, "x", content="needle in a line of some length\n" * 50_000)
    text = grep("needle")
    assert text.endswith("\n[output truncated at 100000 bytes]") and len(text) < 100_100


def test_output_is_valid_text(grep: GrepFor, workspace: Path) -> None:
    (workspace / "x").write_bytes(b"needle \xff\xed\xa0\x80\n")
    assert "needle \ufffd" in grep("needle")


def test_a_catastrophic_expression_can_be_cancelled(workspace: Path) -> None:
    make(workspace, "x", content="a" * 60 + "!\n")
    tool, cancel = Grep(Workspace(str(workspace)), ripgrep=False), Cancel()
    timer = threading.Timer(0.3, cancel.throw, ["enough"])
    timer.start()
    before = time.monotonic()
    with pytest.raises(Cancelled, match="enough"):
        tool.run(Arguments({"pattern": "(a+)+$"}, tool.arguments), cancel)
    assert time.monotonic() - before < 1.3
    timer.join()
