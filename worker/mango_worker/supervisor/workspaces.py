"""The directory that a session's container sees as /workspace: a named volume, or one that the operator staged.

A fresh volume takes the owner from the image's own /workspace. For any other user it is handed over by a short-lived
container that runs nothing but `chown`; the operator's directories are never touched.
"""

from pathlib import Path
from typing import Any

from docker.types import Mount

import docker
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

_LABEL_OWNER = "io.mango.workspace-user"
_HANDOVER_SECONDS = 120
# Contents first, the top last: if this is cut short, the next time finds the top still wrong and does it all again.
_HANDOVER = '[ "$(stat -c %u:%g "$2")" = "$1" ] || chown -R -h "$1" "$2"'


class Workspaces:
    """`supervisor` is the supervisor's name. `check_image` must have been called."""

    def __init__(self, api: docker.APIClient, options: ContainerOptions, root: str | None, supervisor: str) -> None:
        self._api, self._options, self._supervisor = api, options, supervisor
        self._root = None if root is None else Path(root).absolute()
        self._image_user = ""

    def check_image(self) -> None:
        """The image must be here; its user owns what a fresh volume starts with."""
        try:
            with engine_errors("looking for the image"):
                image: dict[str, Any] = self._api.inspect_image(self._options.image)  # type: ignore[no-untyped-call]
        except EngineRefused as error:
            if error.status != 404:
                raise
            raise SandboxError(
                f"the image {self._options.image} is not here; build it with: make worker-image"
            ) from None
        self._image_user = str(image.get("Config", {}).get("User") or "0:0")

    def check_root(self) -> None:
        if self._root is not None and not self._root.is_dir():
            raise SandboxError(f"--workspace-root {self._root} is no directory")

    def prepare(self, item: WorkItem) -> list[str]:
        """See to it that the session's workspace exists and belongs to the container's user; remarks."""
        if self._root is not None:
            return self._staged(item, self._root)
        self._volume(item)
        return []

    def mount(self, item: WorkItem) -> Mount:
        if self._root is not None:
            return Mount(target=WORKDIR, source=str(self._root / item.session_id), type="bind")
        return Mount(target=WORKDIR, source=volume_name(item.session_id), type="volume")

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

    def _volume(self, item: WorkItem) -> None:
        name, wanted = volume_name(item.session_id), self._options.user
        owner = self._volume_owner(name)
        if owner is None:
            with engine_errors("creating the workspace volume"):
                self._api.create_volume(
                    name,
                    labels={
                        LABEL: "true",
                        LABEL_SESSION: item.session_id,
                        LABEL_ENVIRONMENT: item.environment_id,
                        _LABEL_OWNER: wanted,
                    },
                )
        if wanted != self._image_user or owner not in (None, wanted):
            self._hand_over(item)

    def _volume_owner(self, name: str) -> str | None:
        """The user for whom the volume was made; None if there is no such volume."""
        try:
            with engine_errors("looking for the workspace volume"):
                volume = self._api.inspect_volume(name)
        except EngineRefused as error:
            if error.status == 404:
                return None
            raise
        return str((volume.get("Labels") or {}).get(_LABEL_OWNER))

    def _hand_over(self, item: WorkItem) -> None:
        with engine_errors("preparing the workspace"):
            container = self._api.create_container(
                self._options.image,
                entrypoint=["/bin/sh", "-c", _HANDOVER, "handover"],
                command=[self._options.user, WORKDIR],
                user="0:0",
                labels={LABEL: "true", LABEL_SUPERVISOR: self._supervisor, LABEL_SESSION: item.session_id},
                host_config=preparation_host_config(self._api, self.mount(item)),
            )["Id"]
        try:
            with engine_errors("preparing the workspace"):
                self._api.start(container)
                status = self._api.wait(container, timeout=_HANDOVER_SECONDS)["StatusCode"]
            if status != 0:
                raise SandboxError(f"the workspace could not be handed to {self._options.user} (chown ended {status})")
        finally:
            try:
                with engine_errors("removing the preparation container"):
                    self._api.remove_container(container, force=True)
            except (EngineRefused, EngineSilent):
                pass  # it carries our label: the next start sweeps it


def volume_name(session_id: str) -> str:
    return f"mango-ws-{session_id}"


def _may_write(directory: Path, uid: int, gid: int) -> bool:
    """By owner, group and mode alone: good enough for a remark."""
    info = directory.stat()
    if info.st_uid == uid:
        return bool(info.st_mode & 0o200)
    return bool(info.st_mode & (0o020 if info.st_gid == gid else 0o002))
