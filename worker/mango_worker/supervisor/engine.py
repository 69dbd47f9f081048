"""The Docker engine's errors, as ours."""

import contextlib
from collections.abc import Iterator

import docker
import docker.errors
import requests.exceptions

from mango_worker.errors import SandboxError
from mango_worker.text import one_line

PING_SECONDS = 10
OPERATION_SECONDS = 15


class EngineSilent(SandboxError):
    """The engine did not answer: what was asked for may or may not have happened."""


class EngineRefused(SandboxError):
    """The engine said no. `status` is its HTTP status code."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@contextlib.contextmanager
def engine_errors(what: str) -> Iterator[None]:
    """Turn the client library's exceptions into EngineSilent and EngineRefused; `what` is what was being done."""
    try:
        yield
    except docker.errors.APIError as error:
        status = error.response.status_code if error.response is not None else 500
        message = one_line(f"{what}: Docker said: {error.explanation or error}", 300)
        if status >= 500:
            # The engine reports time-outs of its own parts this way; the container may exist all the same.
            raise EngineSilent(message) from None
        raise EngineRefused(status, message) from None
    except (docker.errors.DockerException, requests.exceptions.RequestException, OSError) as error:
        raise EngineSilent(one_line(f"{what}: Docker does not answer: {error}", 300)) from None


def connect() -> docker.APIClient:
    """A client for the engine that the environment names (DOCKER_HOST or the local socket)."""
    try:
        client = docker.from_env(timeout=OPERATION_SECONDS)
        client.ping()
    except (docker.errors.DockerException, requests.exceptions.RequestException) as error:
        raise SandboxError(
            one_line(f"Docker does not answer ({error}); start it, set DOCKER_HOST, or use `mango-worker process`")
        ) from None
    return client.api
