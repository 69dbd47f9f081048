"""What the environment and the command line say."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from coding_agent.failures import ExampleFailed

DEFAULT_BASE_URL = "http://localhost:8080"
DEFAULT_IMAGE = "mango-self-hosted-worker:local"
# A user without a name, without files and without rights, for when the example itself runs as root.
UNPRIVILEGED = (65532, 65532)


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be chosen. `process` means: no Docker, and so no isolation."""

    api_key: str = field(repr=False)
    model_id: str
    base_url: str
    docker_base_url: str
    image: str
    worker: Path
    output_dir: Path
    process: bool
    user: tuple[int, int]

    @classmethod
    def read(cls, environ: Mapping[str, str], *, process: bool) -> Settings:
        """Raises `ExampleFailed` naming what is missing."""
        base_url = _url(environ, "MANGO_EXAMPLE_BASE_URL", DEFAULT_BASE_URL)
        return cls(
            api_key=_required(environ, "MANGO_API_KEY"),
            model_id=_required(environ, "MANGO_EXAMPLE_MODEL_ID", "MANGO_MODEL_ID"),
            base_url=base_url,
            docker_base_url=_url(environ, "MANGO_DOCKER_BASE_URL", _from_container(base_url)),
            image=environ.get("MANGO_WORKER_IMAGE", "").strip() or DEFAULT_IMAGE,
            worker=_worker(environ.get("MANGO_EXAMPLE_WORKER", "").strip()),
            output_dir=Path(environ.get("MANGO_EXAMPLE_OUTPUT_DIR", "").strip() or tempfile.gettempdir()).absolute(),
            process=process,
            user=(os.getuid(), os.getgid()) if process or os.getuid() else UNPRIVILEGED,
        )


def _required(environ: Mapping[str, str], *names: str) -> str:
    for name in names:
        if value := environ.get(name, "").strip():
            return value
    raise ExampleFailed(f"{' or '.join(names)} is not set")


def _url(environ: Mapping[str, str], name: str, default: str) -> str:
    value = environ.get(name, "").strip() or default
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        raise ExampleFailed(f"{name} must look like {DEFAULT_BASE_URL}")
    return value.rstrip("/")


def _from_container(base_url: str) -> str:
    """The same server as a container sees it, whose own loopback address is not this machine's."""
    parts = urlsplit(base_url)
    if parts.hostname not in ("localhost", "127.0.0.1", "::1"):
        return base_url
    port = f":{parts.port}" if parts.port else ""
    return parts._replace(netloc=f"host.docker.internal{port}").geturl()


def _worker(given: str) -> Path:
    """The `mango-worker` command: as given, or beside this Python, or on the path."""
    beside = Path(sys.executable).with_name("mango-worker")
    found = shutil.which(given or str(beside)) or (None if given else shutil.which("mango-worker"))
    if found is None:
        raise ExampleFailed(f"{given or 'mango-worker'} is no command; set MANGO_EXAMPLE_WORKER to the worker's path")
    return Path(found).absolute()
