"""What the operator chose, checked."""

import re
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from mango_worker.errors import WorkerError

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})  # noqa: S104 - compared, never bound
_QUEUE = re.compile(r"[A-Za-z0-9_-]{1,80}")
_USER = re.compile(r"(\d{1,10})(?::(\d{1,10}))?")


@dataclass(frozen=True, slots=True)
class Options:
    """For every kind of supervisor. `max_idle` is in seconds; the key never leaves the supervisor.

    `queue_url` is the environment's doorbell; None is polling over HTTP.
    """

    environment_id: str
    environment_key: str = field(repr=False)
    base_url: str
    worker_id: str
    max_idle: float
    drain: bool = False
    workspace_root: str | None = None
    queue_url: str | None = None

    def named(self, worker_id: str) -> "Options":
        """The same options under the name that the supervisor turned out to have."""
        return replace(self, worker_id=worker_id)


@dataclass(frozen=True, slots=True)
class ContainerOptions:
    """For the Docker supervisor. `user` is `uid:gid`, `memory_bytes` in bytes, `nano_cpus` in billionths of a CPU."""

    image: str = "mango-self-hosted-worker:local"
    network: str = "bridge"
    user: str = "65532:65532"
    sandbox_base_url: str = ""
    memory_bytes: int = 1 << 30
    nano_cpus: int = 1_000_000_000
    pids_limit: int = 256


def checked_url(text: str) -> str:
    """An http(s) base URL without credentials and trailing slash."""
    parts = urlsplit(text.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query or parts.fragment:
        raise WorkerError(f"{text!r} is not a base URL such as http://localhost:8080")
    return text.strip().rstrip("/")


def checked_queue(text: str, environment_id: str) -> str:
    """The URL of an environment's queue. Whoever takes another environment's rings would keep them from its workers."""
    parts = urlsplit(text.strip())
    name = parts.path.rpartition("/")[2]
    if parts.scheme not in ("http", "https") or not parts.hostname or not _QUEUE.fullmatch(name):
        raise WorkerError(f"{text!r} is not the URL of a queue")
    if "-env-" in name and not name.endswith(f"-env-{environment_id}"):
        raise WorkerError(f"{text!r} is not the queue of {environment_id}")
    return text.strip()


def url_inside_container(base_url: str) -> str:
    """`base_url` as a container reaches it: its own loopback address is not the host's."""
    parts = urlsplit(base_url)
    if parts.hostname not in _LOOPBACK:
        return base_url
    port = f":{parts.port}" if parts.port else ""
    return parts._replace(netloc=f"host.docker.internal{port}").geturl()


def checked_user(text: str) -> str:
    """A numeric `uid:gid`; a lone uid is its own gid."""
    match = _USER.fullmatch(text.strip())
    if match is None:
        raise WorkerError(f"--user must be numeric, uid:gid, not {text!r}")
    return f"{match[1]}:{match[2] or match[1]}"
