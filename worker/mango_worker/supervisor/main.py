"""Puts a supervisor together and runs it until it is told to stop."""

import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

from mango_worker.api import Api
from mango_worker.supervisor.claims import Claims
from mango_worker.supervisor.loop import Supervisor
from mango_worker.supervisor.options import Options
from mango_worker.supervisor.rung_claims import RungClaims
from mango_worker.supervisor.sandbox import Sandbox
from mango_worker.text import one_line


def say(text: str) -> None:
    """One line of progress for the operator."""
    print(one_line(text), file=sys.stderr, flush=True)


def supervise(options: Options, sandbox: Sandbox, speak: Callable[[str], None] = say) -> None:
    """Run a supervisor. SIGTERM or SIGINT makes it stop its item and return; raises WorkerError for the operator."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stopper(stop))
    for remark in sandbox.check():
        speak(remark)
    if swept := sandbox.sweep():
        speak(f"removed {swept} leftover{'s' if swept > 1 else ''} of an earlier run")
    api = Api(options.base_url, options.environment_key, options.worker_id)
    try:
        claims = _claims(options, api, stop, speak)
        where = f"at {options.base_url}" + (" and its queue" if options.queue_url else "")
        speak(f"waiting for work of {options.environment_id} {where} as {options.worker_id}")
        Supervisor(claims, sandbox, stop, speak, options.base_url, options.drain).serve()
        speak("stopped" if stop.is_set() else "no work left")
    finally:
        api.close()


def _claims(options: Options, api: Api, stop: threading.Event, speak: Callable[[str], None]) -> Claims:
    if options.queue_url is None:
        return Claims(api, options.environment_id)
    from mango_worker.supervisor.bell import SqsBell  # takes boto3, which workers without a queue need not have

    return RungClaims(api, options.environment_id, SqsBell(options.queue_url), stop, speak)


def _stopper(stop: threading.Event) -> Callable[[int, FrameType | None], None]:
    def on_signal(number: int, frame: FrameType | None) -> None:
        stop.set()

    return on_signal
