"""Search with Python's `re`, for machines without ripgrep. Runs as a script of its own: arguments are a pattern and a
file or directory. Prints `name NUL line:text`; exit status 0 with matches, 1 without, 2 for a bad pattern."""

import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

SKIPPED = frozenset({".git", "node_modules"})
MAX_LINE = 2000


def files(target: str) -> Iterator[str]:
    """Regular files at or below `target`, in order, without following symbolic links."""
    if not Path(target).is_dir():
        yield target
        return
    for directory, inner, names in os.walk(target):
        inner[:] = sorted(name for name in inner if name not in SKIPPED)
        yield from (f"{directory}/{name}" for name in sorted(names))


def search(pattern: re.Pattern[bytes], path: str, out: BinaryIO) -> bool:
    """Print the matching lines of one file; false if there are none or it is not a text file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode) or b"\x00" in file.peek(8192)[:8192]:
            return False
        found = False
        for number, line in enumerate(iter(lambda: file.readline(1 << 20), b""), 1):
            text = line.rstrip(b"\r\n")
            if len(text) <= MAX_LINE and pattern.search(text):
                out.write(os.fsencode(path) + b"\x00" + str(number).encode() + b":" + text + b"\n")
                found = True
        return found


def main(pattern: str, target: str) -> int:
    try:
        compiled = re.compile(pattern.encode("utf-8"))
    except (re.error, OverflowError, RecursionError) as error:
        print(f"bad regular expression: {error}", file=sys.stderr)
        return 2
    found = False
    for path in files(target):
        try:
            found = search(compiled, path, sys.stdout.buffer) or found
        except OSError:
            continue
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
