"""The command line. What a command needs is imported when it runs: the image has less than the supervisor's host."""

import os
import sys
from importlib import metadata
from typing import Annotated

import typer

from mango_worker.durations import parse_duration
from mango_worker.errors import WorkerError
from mango_worker.supervisor.options import (
    ContainerOptions,
    Options,
    checked_queue,
    checked_url,
    checked_user,
    url_inside_container,
)

app = typer.Typer(
    help="Runs the shell and file tools of sessions: supervisors and the process they start.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

EnvironmentId = Annotated[
    str, typer.Option("--environment-id", envvar="MANGO_ENVIRONMENT_ID", help="Environment to claim work of.")
]
BaseUrl = Annotated[str, typer.Option("--base-url", envvar="MANGO_BASE_URL", help="The API, as seen from here.")]
WorkerId = Annotated[
    str, typer.Option("--worker-id", help="Name of this supervisor; by default the host's name and a free number.")
]
MaxIdle = Annotated[
    str, typer.Option("--max-idle", envvar="MANGO_WORKER_MAX_IDLE", help="Leave an idle session after this time.")
]
Drain = Annotated[bool, typer.Option("--drain", help="End when there is no work.")]
Queue = Annotated[
    str,
    typer.Option(
        "--queue", envvar="MANGO_QUEUE_URL", help="Wait at this SQS queue of the environment, with AWS credentials."
    ),
]
WorkspaceRoot = Annotated[
    str, typer.Option("--workspace-root", envvar="MANGO_WORKSPACE_ROOT", help="Use DIR/<session id> as workspace.")
]


@app.command()
def docker(
    environment_id: EnvironmentId,
    base_url: BaseUrl = "http://localhost:8080",
    sandbox_base_url: Annotated[
        str,
        typer.Option(
            "--sandbox-base-url",
            envvar="MANGO_DOCKER_BASE_URL",
            help="The API, as seen from a container; by default --base-url with localhost as host.docker.internal.",
        ),
    ] = "",
    worker_id: WorkerId = "",
    image: Annotated[
        str, typer.Option("--image", envvar="MANGO_WORKER_IMAGE", help="Image of the containers.")
    ] = "mango-self-hosted-worker:local",
    network: Annotated[str, typer.Option("--network", help="Docker network of the containers.")] = "bridge",
    user: Annotated[str, typer.Option("--user", help="uid:gid in the containers.")] = "65532:65532",
    drain: Drain = False,
    max_idle: MaxIdle = "1m",
    memory_bytes: Annotated[int, typer.Option("--memory-bytes", min=64 << 20, help="Memory of one.")] = 1 << 30,
    nano_cpus: Annotated[int, typer.Option("--nano-cpus", min=10_000_000, help="CPU of one, 1e9 is one CPU.")] = 10**9,
    pids_limit: Annotated[int, typer.Option("--pids-limit", min=16, help="Processes and threads in one.")] = 256,
    workspace_root: WorkspaceRoot = "",
    queue: Queue = "",
) -> None:
    """Claim work and run each item in a hardened Docker container. The key is read from MANGO_ENVIRONMENT_KEY."""
    from mango_worker.supervisor.containers import DockerSandbox
    from mango_worker.supervisor.engine import connect
    from mango_worker.supervisor.identity import claim_identity
    from mango_worker.supervisor.main import supervise

    options = _options(environment_id, base_url, worker_id, max_idle, drain, workspace_root, queue)
    container = ContainerOptions(
        image=image,
        network=network,
        user=checked_user(user),
        sandbox_base_url=checked_url(sandbox_base_url) if sandbox_base_url else url_inside_container(options.base_url),
        memory_bytes=memory_bytes,
        nano_cpus=nano_cpus,
        pids_limit=pids_limit,
    )
    identity = claim_identity(options.worker_id or None)
    options = options.named(identity.name)
    try:
        supervise(options, DockerSandbox(connect(), options, container))
    finally:
        identity.release()


@app.command()
def process(
    environment_id: EnvironmentId,
    base_url: BaseUrl = "http://localhost:8080",
    worker_id: WorkerId = "",
    drain: Drain = False,
    max_idle: MaxIdle = "1m",
    workspace_root: WorkspaceRoot = "",
    queue: Queue = "",
    unsandboxed: Annotated[
        bool, typer.Option("--unsandboxed", help="Yes, let the agent's commands run on this machine as this user.")
    ] = False,
) -> None:
    """Claim work and run each item as a plain child process, without any isolation, where there is no Docker."""
    from mango_worker.supervisor.identity import claim_identity
    from mango_worker.supervisor.main import say, supervise
    from mango_worker.supervisor.processes import ProcessSandbox

    say("mango-worker process is no security boundary: the agent's commands run on this machine as this user")
    if not unsandboxed:
        raise WorkerError("add --unsandboxed if that is what you want, or use `mango-worker docker`")
    options = _options(environment_id, base_url, worker_id, max_idle, drain, workspace_root, queue)
    identity = claim_identity(options.worker_id or None)
    options = options.named(identity.name)
    try:
        supervise(options, ProcessSandbox(options))
    finally:
        identity.release()


@app.command()
def run() -> None:
    """Run one work item. Started by a supervisor, which hands over the credential on standard input."""
    from mango_worker.item.process import run_item

    raise typer.Exit(run_item())


@app.command()
def version() -> None:
    """Print the version."""
    try:
        typer.echo(metadata.version("mango-agents"))
    except metadata.PackageNotFoundError:
        typer.echo("unknown")


def main() -> None:
    """Entry point of the console script. Exit codes of supervisors: 0 stopped or drained, 1 for a told reason."""
    try:
        app()
    except WorkerError as error:
        print(f"mango-worker: {error}", file=sys.stderr, flush=True)
        sys.exit(1)


def _options(
    environment_id: str, base_url: str, worker_id: str, max_idle: str, drain: bool, workspace_root: str, queue: str
) -> Options:
    key = os.environ.get("MANGO_ENVIRONMENT_KEY", "").strip()
    if not key:
        raise WorkerError("MANGO_ENVIRONMENT_KEY is not set: the environment's key, or a workspace key")
    return Options(
        environment_id=environment_id,
        environment_key=key,
        base_url=checked_url(base_url),
        worker_id=worker_id,
        max_idle=parse_duration(max_idle),
        drain=drain,
        workspace_root=workspace_root or None,
        queue_url=checked_queue(queue, environment_id) if queue else None,
    )
