"""`mango-worker run`: the life of one item process, from the credential to the final stop."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

from mango_worker import process_guard
from mango_worker.api import Api
from mango_worker.credential import session_token
from mango_worker.errors import ApiRefused, ApiUnavailable, WorkerError
from mango_worker.frame import read_frame
from mango_worker.item.activation import Activation, Arrived, FeedRefused, LeaseEnded, Terminate
from mango_worker.item.feed import Feed
from mango_worker.item.lease import Lease, LeaseLapsed, LeaseLost, StopRequested, acquire, keep
from mango_worker.item.outcome import LOG_PREFIX, Outcome
from mango_worker.item.results import Results
from mango_worker.item.settings import ItemSettings
from mango_worker.text import one_line
from mango_worker.tools.toolset import Toolset

STOP_SECONDS = 5.0


def log(text: str) -> None:
    """One line on standard error; the supervisor shows the last of them when something went wrong."""
    print(f"{LOG_PREFIX}{one_line(text)}", file=sys.stderr, flush=True)


def run_item() -> int:
    """The whole process; its exit code is an `Outcome`."""
    terminated = _Terminated()
    try:
        settings = ItemSettings.from_environment()
        if settings.parent is not None:
            process_guard.end_with_parent(settings.parent)
        process_guard.forbid_inspection()
        process_guard.adopt_orphans()
        api = Api(settings.base_url, session_token(_read_secret()))
    except WorkerError as error:
        log(str(error))
        return Outcome.FAILED
    try:
        return hold_and_work(settings, api, terminated)
    except Exception as error:
        # The outermost frame: whatever it is, the supervisor gets an exit code and a line, and the lease runs out.
        log(f"internal error: {type(error).__name__}: {error}")
        return Outcome.FAILED
    finally:
        api.close()


def hold_and_work(settings: ItemSettings, api: Api, terminated: "_Terminated") -> Outcome:
    """Take the lease, work while it is held, stop the work item."""
    lease = Lease(api, settings.work_path)
    try:
        acquire(lease, terminated.wait)
    except (ApiUnavailable, LeaseLapsed) as trouble:
        log(f"{settings.base_url} cannot be reached: {trouble}")
        return Outcome.UNREACHABLE
    except LeaseLost as lost:
        log(f"lease lost: {lost}")
        return Outcome.LEASE_LOST
    except StopRequested as stop:
        log(f"told to stop before the start: {stop}")
        stop_work(api, settings)
        return Outcome.FINISHED
    except ApiRefused as refused:
        log(f"the first heartbeat was refused: {refused}")
        return Outcome.FAILED
    outcome = _work(settings, api, lease, terminated)
    if outcome is not Outcome.LEASE_LOST:
        stop_work(api, settings)
    return outcome


def _work(settings: ItemSettings, api: Api, lease: Lease, terminated: "_Terminated") -> Outcome:
    over = threading.Event()
    tools = Toolset(settings.workdir)
    results = Results(api, settings.session_path)
    activation = Activation(lease, results, tools, settings.max_idle, log)
    heartbeats = threading.Thread(
        target=keep, args=(lease, over, lambda end: activation.deliver(LeaseEnded(end))), name="heartbeat", daemon=True
    )
    feed = Feed(
        api,
        settings.session_path,
        lambda events: activation.deliver(Arrived(events)),
        lambda refused: activation.deliver(FeedRefused(refused)),
    )
    heartbeats.start()
    try:
        terminated.connect(lambda: activation.deliver(Terminate()))
        if (early := _session_end(api, settings)) is not None:
            return early
        feed.start()
        return activation.run()
    finally:
        over.set()
        results.close()
        feed.close()
        tools.close()
        heartbeats.join(1.0)


def _session_end(api: Api, settings: ItemSettings) -> Outcome | None:
    """The outcome if the session needs nothing from us; None if there is work, or no telling."""
    try:
        session = api.get(settings.session_path)
    except ApiUnavailable:
        return None
    except ApiRefused as refused:
        log(f"the session is not to be had: {refused}")
        return Outcome.LEASE_LOST if refused.status in (401, 403, 412) else Outcome.FINISHED
    if isinstance(session, dict) and session.get("status") == "terminated":
        log("the session is terminated")
        return Outcome.FINISHED
    return None


def stop_work(api: Api, settings: ItemSettings, bound: float = STOP_SECONDS) -> None:
    """Stop the work item; tries for `bound` seconds. Already stopped is just as well."""
    deadline = time.monotonic() + bound
    while (remaining := deadline - time.monotonic()) > 0:
        try:
            api.post(f"{settings.work_path}/stop", body={"force": True}, timeout=max(0.5, min(5.0, remaining)))
            return
        except ApiRefused as refused:
            if refused.status not in (404, 409, 410):
                log(f"the work item could not be stopped: {refused}")
            return
        except ApiUnavailable:
            time.sleep(min(0.5, max(0.0, remaining)))
    log("the work item could not be stopped in time; its lease will run out")


def _read_secret() -> str:
    """The credential from standard input, which is then closed to everything that this process starts."""
    secret = read_frame(sys.stdin.fileno())
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())
    os.close(nothing)
    return secret.decode("ascii", "replace")


class _Terminated:
    """SIGTERM and SIGINT, remembered until there is somebody to tell."""

    def __init__(self) -> None:
        self._came = threading.Event()
        self._tell: Callable[[], None] | None = None
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def wait(self, seconds: float) -> None:
        """Sleep; a signal during the very first heartbeats ends the process, since nothing has been begun."""
        if self._came.wait(seconds):
            raise StopRequested("signal")

    def connect(self, tell: Callable[[], None]) -> None:
        self._tell = tell
        if self._came.is_set():
            tell()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._came.set()
        if self._tell is not None:
            self._tell()
