"""The Docker sandbox: one hardened container for each work item."""

import socket
import threading
import time
import uuid
from contextlib import suppress
from typing import Any

import docker

from mango_worker.errors import SandboxError
from mango_worker.frame import encode_frame
from mango_worker.supervisor.container_settings import (
    LABEL,
    LABEL_CLAIM,
    LABEL_SUPERVISOR,
    WORKDIR,
    container_name,
    host_config,
    labels,
)
from mango_worker.supervisor.details import last_words
from mango_worker.supervisor.engine import EngineRefused, EngineSilent, engine_errors
from mango_worker.supervisor.item_environment import item_environment
from mango_worker.supervisor.options import ContainerOptions, Options
from mango_worker.supervisor.sandbox import Ended
from mango_worker.supervisor.work import WorkItem
from mango_worker.supervisor.workspaces import Workspaces

SWEEP_GRACE = 15.0
_POLL = 0.2
_ENGINE_AWAY = 60.0  # an engine may be restarted under us


class DockerSandbox:
    """Uses the engine of `api`. Containers carry `options.worker_id` as their supervisor."""

    def __init__(self, api: docker.APIClient, options: Options, container: ContainerOptions) -> None:
        self._api, self._options, self._container = api, options, container
        self._workspaces = Workspaces(api, container, options.workspace_root, options.worker_id)

    def check(self) -> list[str]:
        self._check_image()
        self._workspaces.check_root()
        root = self._container.user.split(":")[0] == "0"
        return ["--user is root: tools run as root inside the container (without capabilities)"] if root else []

    def _check_image(self) -> None:
        image = self._container.image
        try:
            with engine_errors("looking for the image"):
                self._api.inspect_image(image)  # type: ignore[no-untyped-call]
        except EngineRefused as error:
            if error.status != 404:
                raise
            raise SandboxError(f"the image {image} is not here; build it with: make worker-image") from None

    def sweep(self) -> int:
        ours = [f"{LABEL}=true", f"{LABEL_SUPERVISOR}={self._options.worker_id}"]
        with engine_errors("looking for leftovers"):
            found = self._api.containers(all=True, filters={"label": ours})
        running = [DockerRunning(self._api, one["Id"], None) for one in found]
        for one in running:
            # Asked first: an item process that still holds its lease gives it up, and nobody waits for it to run out.
            with suppress(SandboxError):
                one.terminate()
        deadline = time.monotonic() + SWEEP_GRACE
        for one in running:
            one.wait_until(deadline)
            one.remove()
        return len(running)

    def prepare(self, item: WorkItem) -> list[str]:
        return self._workspaces.prepare(item)

    def start(self, item: WorkItem) -> "DockerRunning":
        container = self._create(item, uuid.uuid4().hex)
        running = DockerRunning(self._api, container, item)
        try:
            self._workspaces.settle(item, container)
            self._start_with_secret(container, encode_frame(item.secret.encode("ascii", "replace")))
        except BaseException:
            with suppress(SandboxError):
                running.remove()
            raise
        return running

    def _create(self, item: WorkItem, claim: str) -> str:
        """Create the container; its id. What an earlier claim left under the name is removed first."""
        self._remove_leftover(item, claim)
        try:
            return self._create_once(item, claim)
        except (EngineSilent, EngineRefused) as error:
            if isinstance(error, EngineRefused) and error.status != 409:
                raise
            # Either our request arrived and its answer did not, or somebody else's container stands in the way.
            if (made := self._remove_leftover(item, claim)) is not None:
                return made
            return self._create_once(item, claim)

    def _create_once(self, item: WorkItem, claim: str) -> str:
        base_url = self._container.sandbox_base_url
        with engine_errors("creating the container"):
            created = self._api.create_container(
                self._container.image,
                entrypoint=["/usr/local/bin/mango-worker", "run"],
                command=[],
                name=container_name(item),
                user=self._container.user,
                working_dir=WORKDIR,
                environment={
                    **item_environment(item, self._options, base_url, WORKDIR, sandboxed=True),
                    "HOME": "/tmp",  # noqa: S108 - a path inside the container
                },
                labels=labels(item, self._options.worker_id, claim),
                stdin_open=True,
                detach=False,
                host_config=host_config(self._api, self._container, self._workspaces.mount(item)),
            )
        return str(created["Id"])

    def _remove_leftover(self, item: WorkItem, claim: str) -> str | None:
        """Remove the container that has the item's name; the id of it, unremoved, if it is this very claim's."""
        name = container_name(item)
        found = _inspect(self._api, name)
        if found is None:
            return None
        marks = found["Config"].get("Labels") or {}
        if marks.get(LABEL_CLAIM) == claim:
            return str(found["Id"])
        if marks.get(LABEL) != "true":
            raise SandboxError(f"a container named {name} exists and is none of ours")
        DockerRunning(self._api, str(found["Id"]), None).remove()
        return None

    def _start_with_secret(self, container: str, frame: bytes) -> None:
        # Attached before the start, so that the item process finds an open standard input whenever it looks.
        with engine_errors("attaching to the container"):
            attached = self._api.attach_socket(container, params={"stdin": 1, "stream": 1})
        try:
            self._start(container)
            with engine_errors("handing over the credential"):
                _send(attached, frame)
        finally:
            _close(attached)

    def _start(self, container: str) -> None:
        for last in (False, True):
            try:
                with engine_errors("starting the container"):
                    self._api.start(container)
                return
            except EngineSilent:
                found = _inspect(self._api, container)
                if found is not None and found["State"]["Status"] != "created":
                    return
                if last:
                    raise


class DockerRunning:
    """One container."""

    def __init__(self, api: docker.APIClient, container: str, item: WorkItem | None) -> None:
        self._api, self._id, self._item = api, container, item

    def wait(self, stop: threading.Event) -> Ended | None:
        away_since: float | None = None
        while not stop.is_set():
            try:
                state = self._state()
                away_since = None
            except EngineSilent:
                away_since = away_since or time.monotonic()
                if time.monotonic() - away_since > _ENGINE_AWAY:
                    raise
            else:
                if state is None or not state.get("Running"):
                    return self._ended(state)
            stop.wait(_POLL)
        return None

    def stop(self, grace: float) -> Ended:
        try:
            self.terminate()
            self.wait_until(time.monotonic() + grace)
            state = self._state()
            if state is not None and state.get("Running"):
                with suppress(EngineRefused), engine_errors("killing the container"):
                    self._api.kill(self._id)
                self.wait_until(time.monotonic() + 5.0)
                state = self._state()
            return self._ended(state)
        except EngineSilent:
            return Ended(None)

    def terminate(self) -> None:
        """Send SIGTERM. A container that does not run is no error."""
        with suppress(EngineRefused), engine_errors("stopping the container"):
            self._api.kill(self._id, signal="SIGTERM")

    def wait_until(self, deadline: float) -> None:
        """Wait for its end, but not beyond `deadline` (of time.monotonic)."""
        while (state := self._state()) is not None and state.get("Running") and time.monotonic() < deadline:
            time.sleep(_POLL)

    def remove(self) -> None:
        try:
            with engine_errors("removing the container"):
                self._api.remove_container(self._id, force=True, v=True)
        except EngineRefused as error:
            # Gone, or just being removed by somebody else.
            if error.status not in (404, 409):
                raise

    def _state(self) -> dict[str, Any] | None:
        found = _inspect(self._api, self._id)
        return None if found is None else found["State"]

    def _ended(self, state: dict[str, Any] | None) -> Ended:
        if state is None:
            return Ended(None)
        code = int(state.get("ExitCode", -1))
        words: tuple[str, ...] = ()
        if self._item is not None and code != 0:
            with suppress(SandboxError), engine_errors("reading the container's log"):
                raw = self._api.logs(self._id, stdout=False, stderr=True, tail=50)
                words = last_words(raw, code, self._item)
            if state.get("OOMKilled"):
                words = (*words, "it ran out of memory; see --memory-bytes")
        return Ended(code, words)


def _inspect(api: docker.APIClient, container: str) -> dict[str, Any] | None:
    """The container's description; None if there is none."""
    try:
        with engine_errors("looking at the container"):
            found: dict[str, Any] = api.inspect_container(container)
            return found
    except EngineRefused as error:
        if error.status == 404:
            return None
        raise


def _send(attached: Any, frame: bytes) -> None:
    # The client library wraps the connection differently for local sockets and for TLS.
    connection = getattr(attached, "_sock", attached)
    connection.sendall(frame)
    with suppress(OSError):
        connection.shutdown(socket.SHUT_WR)


def _close(attached: Any) -> None:
    # The response is what the connection belongs to; closing the socket first would make its own closing fail.
    response = getattr(attached, "_response", None)
    with suppress(OSError):
        if response is not None:
            response.close()
        attached.close()
