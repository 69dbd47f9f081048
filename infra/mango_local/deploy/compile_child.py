"""Compiles every module below a folder, for a place where nothing can be written: `python compile_child.py FOLDER`.

Runs on the interpreter that the package is for. What it makes is taken without looking at the source again, and is
the same each time, if hashes of text are not random. Imports nothing of Mango.
"""

from __future__ import annotations

import py_compile
import sys
from pathlib import Path


def main(folder: Path) -> None:
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder).as_posix()
        try:
            py_compile.compile(
                str(path), dfile=name, doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
            )
        except py_compile.PyCompileError as error:
            # Some packages carry modules for other versions of Python, which nobody imports.
            print(f"not compiled: {name}: {error.exc_type_name}", file=sys.stderr)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
