"""Runs other programs, so that they end when the example is stopped."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from coding_agent.failures import ExampleFailed

# What tells how to reach a model, and the key that the worker gets under another name.
_WITHHELD = ("MANGO_MODEL", "MANGO_API_KEY", "ANTHROPIC_", "AWS_")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended, and all that it printed."""

    code: int
    output: str


def child_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` without credentials that no child of the example needs."""
    return {name: value for name, value in environ.items() if not name.startswith(_WITHHELD)}


async def execute(
    command: Sequence[str], *, seconds: float, folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> Ended:
    """Runs a program to its end. Raises `ExampleFailed` if it cannot be started or takes too long."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=folder,
            env=child_environment(os.environ) if environment is None else environment,
            # Ctrl-C is for the example, which then ends its children itself.
            start_new_session=True,
        )
    except OSError as error:
        raise ExampleFailed(f"{command[0]} cannot be started: {error.strerror}") from None
    try:
        async with asyncio.timeout(seconds):
            output, _ = await process.communicate()
    except TimeoutError:
        raise ExampleFailed(f"{' '.join(command[:2])} took longer than {seconds:g} s") from None
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            await process.wait()
    return Ended(process.returncode or 0, output.decode("utf-8", "replace"))
