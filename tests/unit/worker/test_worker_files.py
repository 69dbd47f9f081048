"""The tools read, write and edit, and the confinement that they share."""

import base64
import contextlib
import os
import shutil
import threading
import time
from pathlib import Path

import pytest

from mango_worker.tools.base import ToolError
from mango_worker.tools.edit import replace
from tests.unit.worker.conftest import Run, text_of

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


def failing(run: Run, name: str, **arguments: object) -> str:
    result = run(name, **arguments)
    assert result.is_error
    return text_of(result)


def test_write_makes_parents_and_says_how_much(run: Run, workspace: Path) -> None:
    assert text_of(run("write", file_path="a/b/c.txt", content="é\n")) == "wrote 3 bytes to a/b/c.txt"
    assert (workspace / "a/b/c.txt").read_bytes() == b"\xc3\xa9\n"
    assert (workspace / "a/b/c.txt").stat().st_mode & 0o777 == 0o644


def test_write_keeps_the_mode_and_leaves_no_temporary_file(run: Run, workspace: Path) -> None:
    script = workspace / "run.sh"
    script.write_text("old")
    script.chmod(0o751)
    run("write", file_path=str(script), content="new")
    assert script.read_text() == "new" and script.stat().st_mode & 0o777 == 0o751
    run("write", file_path="d", content="x")
    failing(run, "write", file_path="d/inner", content="x")
    assert sorted(path.name for path in workspace.iterdir()) == ["d", "run.sh"]


def test_write_goes_through_a_link_inside_and_keeps_it(run: Run, workspace: Path) -> None:
    (workspace / "real").write_text("old")
    (workspace / "link").symlink_to("real")
    run("write", file_path="link", content="new")
    assert (workspace / "real").read_text() == "new" and (workspace / "link").is_symlink()


def test_read_gives_text_as_it_is(run: Run, workspace: Path) -> None:
    (workspace / "x").write_bytes(b"\xef\xbb\xbfa\r\n\tb\rc\n")
    assert text_of(run("read", file_path="x")) == "\ufeffa\r\n\tb\rc\n"
    (workspace / "empty").touch()
    assert text_of(run("read", file_path="empty")) == "(no output)"
    (workspace / "latin").write_bytes(b"caf\xe9")
    assert text_of(run("read", file_path="latin")) == "caf\ufffd"


@pytest.mark.parametrize(
    ("view_range", "expected"),
    [([1, 1], "1\n"), ([2, 3], "2\n3\n"), ([4, -1], "4\nlast"), ([5, 0], "last"), ([5, 99], "last"), ([1, -1], None)],
)
def test_read_ranges(run: Run, workspace: Path, view_range: list[int], expected: str | None) -> None:
    (workspace / "x").write_text("1\n2\n3\n4\nlast")
    assert text_of(run("read", file_path="x", view_range=view_range)) == (expected or "1\n2\n3\n4\nlast")


@pytest.mark.parametrize("view_range", [[0, 1], [3, 2], [9, -1], [1], "1-2", [1, "2"], [1, 2, 3], [True, 2]])
def test_read_bad_ranges(run: Run, workspace: Path, view_range: object) -> None:
    (workspace / "x").write_text("1\n2\n3\n")
    failing(run, "read", file_path="x", view_range=view_range)


def test_a_large_file_is_read_in_parts(run: Run, workspace: Path) -> None:
    (workspace / "x").write_text("".join(f"line {number}\n" for number in range(1, 100_001)))
    assert "view_range" in failing(run, "read", file_path="x")
    assert text_of(run("read", file_path="x", view_range=[70_000, 70_001])) == "line 70000\nline 70001\n"
    assert text_of(run("read", file_path="x", view_range=[100_000, -1])) == "line 100000\n"
    assert "larger than" in failing(run, "read", file_path="x", view_range=[1, -1])


def test_a_sparse_file_of_100_gb_ends_early(run: Run, workspace: Path) -> None:
    with (workspace / "x").open("wb") as file:
        file.truncate(100 << 30)
    before = time.monotonic()
    failing(run, "read", file_path="x")
    failing(run, "read", file_path="x", view_range=[1, 5])
    failing(run, "edit", file_path="x", old_string="a", new_string="b")
    assert time.monotonic() - before < 2


def test_binary_files_are_not_read(run: Run, workspace: Path) -> None:
    (workspace / "x").write_bytes(b"ab\0cd")
    assert "binary" in failing(run, "read", file_path="x")


def test_images_and_documents_become_blocks(run: Run, workspace: Path) -> None:
    (workspace / "a.PNG").write_bytes(PNG)
    (workspace / "b.pdf").write_bytes(b"%PDF-1.7\n")
    (image,) = run("read", file_path="a.PNG").content
    assert image["type"] == "image" and image["source"]["media_type"] == "image/png"
    assert base64.b64decode(image["source"]["data"]) == PNG
    (document,) = run("read", file_path="b.pdf").content
    assert document["type"] == "document" and document["source"]["media_type"] == "application/pdf"
    assert "view_range" in failing(run, "read", file_path="a.PNG", view_range=[1, 2])


def test_a_false_image_is_refused(run: Run, workspace: Path) -> None:
    (workspace / "a.png").write_text("text")
    assert "no image/png" in failing(run, "read", file_path="a.png")


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\nb\n", b"a", b"c", b"c\nb\n"),
        (b"a\r\n\tb\r\nc\r\n", b"a\n\tb", b"x\ny\n\tb", b"x\r\ny\r\n\tb\r\nc\r\n"),
        (b"a\r\nb\r\n", b"b", b"c\nd", b"a\r\nc\r\nd\r\n"),
        (b"a\r\nb\r\n", b"a\r\nb", b"c\r\nd", b"c\r\nd\r\n"),
        (b"a\nb\r\nc\r\n", b"b\nc", b"x\ny", b"a\nx\r\ny\r\n"),
        (b"\xef\xbb\xbfa\n\xff\t b\n", b"a", b"c", b"\xef\xbb\xbfc\n\xff\t b\n"),
        (b"no newline", b"newline", b"end", b"no end"),
    ],
)
def test_edit_changes_nothing_besides(before: bytes, old: bytes, new: bytes, after: bytes) -> None:
    assert replace(before, old, new, False) == (after, 1)


def test_edit_says_how_many(run: Run, workspace: Path) -> None:
    (workspace / "x").write_text("one two one")
    assert "0 matches" in failing(run, "edit", file_path="x", old_string="On", new_string="y")
    assert "2 matches" in failing(run, "edit", file_path="x", old_string="one", new_string="y")
    assert (workspace / "x").read_text() == "one two one"
    result = run("edit", file_path="x", old_string="one", new_string="y", replace_all=True)
    assert text_of(result) == "edited x (2 replacement(s))"
    assert (workspace / "x").read_text() == "y two y"


def test_edit_counts_overlapping_places_as_ambiguous() -> None:
    with pytest.raises(ToolError, match="2 matches"):
        replace(b"aaa", b"aa", b"b", False)


def test_edit_refuses_what_makes_no_sense(run: Run, workspace: Path) -> None:
    (workspace / "x").write_text("text")
    failing(run, "edit", file_path="x", old_string="", new_string="y")
    failing(run, "edit", file_path="x", old_string="text", new_string="text")
    failing(run, "edit", file_path="missing", old_string="a", new_string="b")
    failing(run, "edit", file_path="x", old_string="text")


ESCAPES = [
    "..", "../", "../outside", "a/../../outside", "/etc/passwd", "/", "//etc/passwd",
    "~/../../etc/passwd/../../outside",
    "link", "link/secret", "chain/secret", "deep/up/outside/secret", "file-link", "/proc/self/root/etc/passwd",
    "/proc/self/environ", "/proc/1/environ", "/dev/null", "/dev/zero", "absolute/../../outside/secret", "dangling",
    "loop", "loop/x", "fifo", "socket-dir/../../outside/secret", "./../outside/secret", "link/../outside/secret",
    ".", "", "x" * 300, "y/" * 3000, "nul\x00byte", "\ud800",
]  # fmt: skip


@pytest.fixture
def traps(workspace: Path) -> Path:
    outside = workspace.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_text("do not read")
    (workspace / "deep").mkdir()
    (workspace / "link").symlink_to(outside)
    (workspace / "chain").symlink_to("link")
    (workspace / "deep" / "up").symlink_to("../..")
    (workspace / "file-link").symlink_to(outside / "secret")
    (workspace / "absolute").symlink_to(workspace)
    (workspace / "dangling").symlink_to(outside / "new")
    (workspace / "loop").symlink_to("loop")
    os.mkfifo(workspace / "fifo")
    return outside


@pytest.mark.parametrize("path", ESCAPES)
@pytest.mark.parametrize("tool", ["read", "write", "edit"])
def test_no_path_leads_out_or_hangs(run: Run, traps: Path, tool: str, path: str) -> None:
    more = {"write": {"content": "x"}, "edit": {"old_string": "do", "new_string": "x"}, "read": {}}[tool]
    before = time.monotonic()
    result = run(tool, file_path=path, **more)
    assert time.monotonic() - before < 2
    if not (tool == "write" and path == "\ud800"):
        assert result.is_error
    assert "do not read" not in text_of(result)
    assert sorted(entry.name for entry in traps.iterdir()) == ["secret"]
    assert (traps / "secret").read_text() == "do not read"


def test_a_directory_swapped_for_a_link_in_mid_call_is_no_way_out(run: Run, workspace: Path, traps: Path) -> None:
    (workspace / "d").mkdir()
    (workspace / "d" / "secret").write_text("harmless")
    over = threading.Event()

    place, aside = workspace / "d", workspace / "aside"

    def swap() -> None:
        steps = (
            lambda: place.rename(aside),
            lambda: place.symlink_to(traps),
            lambda: place.unlink(),
            # A write that came just now has made the directory anew.
            lambda: shutil.rmtree(place),
            lambda: aside.rename(place),
        )
        while not over.is_set():
            for step in steps:
                with contextlib.suppress(OSError):
                    step()

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        for _ in range(300):
            assert "do not read" not in text_of(run("read", file_path="d/secret"))
            run("write", file_path="d/secret", content="harmless")
    finally:
        over.set()
        swapper.join()
    assert (traps / "secret").read_text() == "do not read"


def test_errors_name_the_path_as_it_was_given(run: Run) -> None:
    assert failing(run, "read", file_path="a/b/missing") == "read: a/b/missing: No such file or directory"
