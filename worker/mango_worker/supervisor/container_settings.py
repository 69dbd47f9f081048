"""How a session's container is built: what it may do, what it sees, how it is found again."""

from typing import Any

import docker
from docker.types import LogConfig, Mount, Ulimit

from mango_worker.supervisor.options import ContainerOptions
from mango_worker.supervisor.work import WorkItem

WORKDIR = "/workspace"
LABEL = "io.mango.self-hosted-worker"
LABEL_SUPERVISOR = "io.mango.supervisor"
LABEL_WORK = "io.mango.work-id"
LABEL_SESSION = "io.mango.session-id"
LABEL_ENVIRONMENT = "io.mango.environment-id"
LABEL_CLAIM = "io.mango.claim"
_TMPFS = "rw,nosuid,nodev,size=67108864,mode=1777"


def container_name(item: WorkItem) -> str:
    """The same for every claim of a work item, so that a leftover of an earlier claim is met and removed."""
    return f"mango-{item.id}"


def labels(item: WorkItem, supervisor: str, claim: str) -> dict[str, str]:
    """`claim` is new for every attempt: it tells our container from one that an earlier claim left."""
    return {
        LABEL: "true",
        LABEL_SUPERVISOR: supervisor,
        LABEL_WORK: item.id,
        LABEL_SESSION: item.session_id,
        LABEL_ENVIRONMENT: item.environment_id,
        LABEL_CLAIM: claim,
    }


def host_config(api: docker.APIClient, options: ContainerOptions, workspace: Mount) -> Any:
    """The limits of a session's container."""
    return api.create_host_config(
        read_only=True,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges:true"],
        tmpfs={"/tmp": _TMPFS},  # noqa: S108 - a path inside the container
        mounts=[workspace],
        mem_limit=options.memory_bytes,
        # The same as the memory limit: no swap besides.
        memswap_limit=options.memory_bytes,
        nano_cpus=options.nano_cpus,
        pids_limit=options.pids_limit,
        # Process 1 collects zombies and passes signals on to the item process.
        init=True,
        network_mode=options.network,
        extra_hosts={"host.docker.internal": "host-gateway"},
        ipc_mode="private",
        ulimits=[Ulimit(name="nofile", soft=4096, hard=4096), Ulimit(name="core", soft=0, hard=0)],
        # What the item process says is read from here when something went wrong; it must not fill the disk.
        log_config=LogConfig(type=LogConfig.types.JSON, config={"max-size": "1m", "max-file": "1"}),
    )


def preparation_host_config(api: docker.APIClient, workspace: Mount) -> Any:
    """The limits of the container that hands a workspace to its user: root, able to change owners, nothing else."""
    return api.create_host_config(
        read_only=True,
        cap_drop=["ALL"],
        cap_add=["CHOWN"],
        security_opt=["no-new-privileges:true"],
        mounts=[workspace],
        mem_limit=1 << 28,
        pids_limit=16,
        network_mode="none",
    )
