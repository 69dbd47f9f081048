"""The environment of an item process. It holds no credential."""

from mango_worker.supervisor.options import Options
from mango_worker.supervisor.work import WorkItem


def item_environment(item: WorkItem, options: Options, base_url: str, workdir: str, sandboxed: bool) -> dict[str, str]:
    """`base_url` and `workdir` as the item process sees them."""
    return {
        "MANGO_SANDBOXED": "1" if sandboxed else "0",
        "MANGO_BASE_URL": base_url,
        "MANGO_WORK_ID": item.id,
        "MANGO_ENVIRONMENT_ID": item.environment_id,
        "MANGO_SESSION_ID": item.session_id,
        "MANGO_WORKDIR": workdir,
        "MANGO_WORKER_MAX_IDLE": f"{round(options.max_idle * 1000)}ms",
    }
