"""What packages are made for: an interpreter on a kind of machine."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass

LAMBDA_PYTHON = "3.13"
"""As in template.yaml."""


@dataclass(frozen=True, slots=True)
class Target:
    """Python's version, and the machine by its name in tags of wheels."""

    python: str
    machine: str

    @property
    def here(self) -> bool:
        """Whether this interpreter is like it, so that what is installed here runs there."""
        return self == this_interpreter() and sys.platform == "linux"

    @property
    def markers(self) -> dict[str, str]:
        """The environment that requirements are judged in."""
        return {
            "implementation_name": "cpython",
            "implementation_version": f"{self.python}.0",
            "os_name": "posix",
            "platform_machine": self.machine,
            "platform_python_implementation": "CPython",
            "platform_release": "",
            "platform_system": "Linux",
            "platform_version": "",
            "python_full_version": f"{self.python}.0",
            "python_version": self.python,
            "sys_platform": "linux",
            "extra": "",
        }


def this_interpreter() -> Target:
    """The target that this interpreter is."""
    return Target(f"{sys.version_info.major}.{sys.version_info.minor}", _machine())


def on_aws() -> Target:
    """Lambda as template.yaml describes it."""
    return Target(LAMBDA_PYTHON, "aarch64")


def in_containers() -> Target:
    """Lambda on an emulator that runs the runtime's own images on this machine."""
    return Target(LAMBDA_PYTHON, _machine())


def _machine() -> str:
    found = platform.machine().lower()
    return {"arm64": "aarch64", "amd64": "x86_64"}.get(found, found)
