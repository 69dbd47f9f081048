"""The directory that a session's container sees as /workspace: a named volume, or one that the operator staged.

A fresh volume takes the owner from the image's own /workspace. If that is not the container's user (another --user, or
another than last time) the volume is handed over by a short-lived container that runs nothing but `chown`. The
operator's directories are never touched.
"""

import io
import tarfile
from contextlib import suppress
from pathlib import Path

import docker
from docker.types import Mount

from mango_worker.errors import SandboxError, SandboxNotReady
from mango_worker.supervisor.container_settings import (
    LABEL,
    LABEL_ENVIRONMENT,
    LABEL_SESSION,
    LABEL_SUPERVISOR,
    WORKDIR,
    preparation_host_config,
)
from mango_worker.supervisor.engine import EngineRefused, EngineSilent, engine_errors
from mango_worker.supervisor.options import ContainerOptions
from mango_worker.supervisor.work import WorkItem

_HANDOVER_SECONDS = 120
# Contents first, the top last: if this is cut short, the next time finds the top still wrong and does it all again.
_HANDOVER = '[ "$(stat -c %u:%g "$2")" = "$1" ] || chown -R -h "$1" "$2"'


class Workspaces:
    """`supervisor` is the supervisor's name, by which it finds its own containers again."""

    def __init__(self, api: docker.APIClient, options: ContainerOptions, root: str | None, supervisor: str) -> None:
        self._api, self._options, self._supervisor = api, options, supervisor
        self._root = None if root is None else Path(root).absolute()

    def check_root(self) -> None:
        if self._root is not None and not self._root.is_dir():
            raise SandboxError(f"--workspace-root {self._root} is no directory")

    def prepare(self, item: WorkItem) -> list[str]:
        """See to it that the session's workspace exists; remarks."""
        if self._root is not None:
            return self._staged(item, self._root)
        names = {LABEL: "true", LABEL_SESSION: item.session_id, LABEL_ENVIRONMENT: item.environment_id}
        with engine_errors("creating the workspace volume"):
            # An existing volume of that name is left as it is.
            self._api.create_volume(volume_name(item.session_id), labels=names)
        return []

    def mount(self, item: WorkItem) -> Mount:
        if self._root is not None:
            return Mount(target=WORKDIR, source=str(self._root / item.session_id), type="bind")
        return Mount(target=WORKDIR, source=volume_name(item.session_id), type="volume")

    def settle(self, item: WorkItem, container: str) -> None:
        """Make the volume of a created, not yet started container belong to the container's user."""
        if self._root is None and self._owner(container) != self._options.user:
            self._hand_over(item)

    def _staged(self, item: WorkItem, root: Path) -> list[str]:
        directory = root / item.session_id
        if not directory.is_dir():
            raise SandboxNotReady(f"{directory} does not exist; create it for the session, with its input files")
        uid, gid = (int(part) for part in self._options.user.split(":"))
        if not _may_write(directory, uid, gid):
            return [
                f"{directory} is not writable for {self._options.user}, as which the container runs; "
                "change its owner, or give --user"
            ]
        return []

    def _owner(self, container: str) -> str:
        """Who owns the workspace in a container, which need not run: the first header of it as an archive tells."""
        with engine_errors("looking at the workspace"):
            chunks, _ = self._api.get_archive(container, WORKDIR, chunk_size=16_384)
            head = next(iter(chunks), b"")
        try:
            with tarfile.open(fileobj=io.BytesIO(head), mode="r|") as archive:
                first = archive.next()
        except tarfile.TarError as error:
            raise SandboxError(f"the workspace's owner cannot be told: {error}") from None
        return "" if first is None else f"{first.uid}:{first.gid}"

    def _hand_over(self, item: WorkItem) -> None:
        with engine_errors("preparing the workspace"):
            container = self._api.create_container(
                self._options.image,
                entrypoint=["/bin/sh", "-c", _HANDOVER, "handover"],
                command=[self._options.user, WORKDIR],
                user="0:0",
                labels={LABEL: "true", LABEL_SUPERVISOR: self._supervisor, LABEL_SESSION: item.session_id},
                host_config=preparation_host_config(
                    # Without no_copy an empty volume would be given the image's owner once more.
                    self._api,
                    Mount(target=WORKDIR, source=volume_name(item.session_id), type="volume", no_copy=True),
                ),
            )["Id"]
        try:
            with engine_errors("preparing the workspace"):
                self._api.start(container)
                status = self._api.wait(container, timeout=_HANDOVER_SECONDS)["StatusCode"]
            if status != 0:
                raise SandboxError(f"the workspace could not be handed to {self._options.user} (chown ended {status})")
        finally:
            # If this fails, the container carries our labels: the next start sweeps it.
            with suppress(EngineRefused, EngineSilent), engine_errors("removing the preparation container"):
                self._api.remove_container(container, force=True)


def volume_name(session_id: str) -> str:
    return f"mango-ws-{session_id}"


def _may_write(directory: Path, uid: int, gid: int) -> bool:
    """By owner, group and mode alone: good enough for a remark."""
    info = directory.stat()
    if info.st_uid == uid:
        return bool(info.st_mode & 0o200)
    return bool(info.st_mode & (0o020 if info.st_gid == gid else 0o002))
