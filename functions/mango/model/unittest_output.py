"""Reads what `python -m unittest -v` prints."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath


@dataclass(frozen=True, slots=True)
class Failure:
    """A test that failed: where, and what was compared if it was an equality of two numbers."""

    test: str
    parameters: str
    """Of a subtest, as printed: `(amount=5000)`."""
    frames: tuple[tuple[str, int, str, str], ...]
    """The traceback from outside in: file, line, function, source."""
    error: str
    got: int | None = None
    expected: int | None = None

    @property
    def key(self) -> str:
        """Tells this failure from others of the same run."""
        return f"{self.test} {self.parameters}".strip()


@dataclass(frozen=True, slots=True)
class TestRun:
    """One run of the tests, or of what printed nothing that looks like one: `count` is None then."""

    __test__ = False  # for pytest, which takes any class of this name for tests

    count: int | None
    passed: bool
    failures: tuple[Failure, ...]
    modules: tuple[str, ...]
    """Modules of the tests, as printed."""


_TEST = re.compile(r"^(?:(?:FAIL|ERROR): )?(\w+) \(([\w.]+)\)", re.MULTILINE)
_HEAD = re.compile(r"^(?:FAIL|ERROR): (\w+) \([\w.]+\)(.*)$")
_FRAME = re.compile(r'^  File "([^"]+)", line (\d+), in (\S+)$')
_UNEQUAL = re.compile(r"AssertionError: (-?\d+) != (-?\d+)(?!\S)")


def parse_run(output: str) -> TestRun:
    """The run that this output shows."""
    output = output.replace("\r\n", "\n")
    count = re.search(r"^Ran (\d+) tests? in ", output, re.MULTILINE)
    passed = re.search(r"^OK(?: \(.*\))?$", output, re.MULTILINE) is not None
    sections = re.split(r"^={20,}\n", output, flags=re.MULTILINE)[1:]
    failures = [failure for failure in map(_failure, sections) if failure is not None]
    modules = dict.fromkeys(_module(dotted) for _, dotted in _TEST.findall(output))
    return TestRun(
        count=int(count.group(1)) if count else None,
        passed=passed and count is not None and int(count.group(1)) > 0,
        failures=tuple(failures),
        modules=tuple(modules),
    )


def source_file(run: TestRun) -> str | None:
    """Path of the module under test: where a traceback leads, or else what the tests' own name says."""
    files = [file for failure in run.failures for file, *_ in failure.frames]
    tests = [path for path in map(PurePosixPath, files) if _subject(path.stem)]
    folders = {path.parent for path in tests}
    for path in map(PurePosixPath, files):
        if path.parent in folders and not _subject(path.stem):
            return str(path)
    if tests:
        return str(tests[0].with_name(f"{_subject(tests[0].stem)}.py"))
    for module in run.modules:
        path = PurePosixPath(*module.split("."))
        if subject := _subject(path.name):
            return str(path.with_name(f"{subject}.py"))
    return None


def _subject(name: str) -> str:
    """`invoice` for `test_invoice` or `invoice_test`, empty for what is no name of tests."""
    return name.removeprefix("test_") if name.startswith("test_") else name[: -len("_test")] * name.endswith("_test")


def _module(dotted: str) -> str:
    """`test_invoice` of `test_invoice.InvoiceTest.test_empty`; older versions print no method."""
    parts = dotted.split(".")
    classes = [index for index, part in enumerate(parts) if index and part[:1].isupper()]
    return ".".join(parts[: classes[0]] if classes else parts[:1])


def _failure(section: str) -> Failure | None:
    lines = section.splitlines()
    head = _HEAD.match(lines[0]) if lines else None
    if head is None:
        return None
    frames: list[tuple[str, int, str, str]] = []
    error = ""
    for line in lines[1:]:
        if frame := _FRAME.match(line):
            frames.append((frame.group(1), int(frame.group(2)), frame.group(3), ""))
        elif frames and line.startswith("    "):
            if line.strip(" ~^"):
                file, number, function, source = frames[-1]
                frames[-1] = (file, number, function, f"{source} {line.strip()}".strip())
        elif frames and line.strip():
            error = line.strip()
            break
    unequal = _UNEQUAL.match(error)
    got, expected = (int(unequal.group(1)), int(unequal.group(2))) if unequal else (None, None)
    return Failure(head.group(1), head.group(2).strip(), tuple(frames), error, got, expected)
