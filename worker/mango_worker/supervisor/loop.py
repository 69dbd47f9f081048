"""The claim loop: one item at a time from claim to removal.

`serve` holds no state of an item between two rounds, so several of these may run side by side over one sandbox.
"""

import threading
from collections.abc import Callable

from mango_worker.errors import ApiRefused, ApiUnavailable, SandboxError, SandboxNotReady, WorkerError
from mango_worker.item.outcome import Outcome
from mango_worker.supervisor.claims import Ack, Backoff, Claims, Pace
from mango_worker.supervisor.sandbox import Ended, Running, Sandbox
from mango_worker.supervisor.work import WorkItem

STOP_GRACE = 40.0  # an item process needs less than 30 s to wind up


class Supervisor:
    """`say` gets one line per event. `stop` ends the loop; an item that runs is stopped gracefully."""

    def __init__(
        self,
        claims: Claims,
        sandbox: Sandbox,
        stop: threading.Event,
        say: Callable[[str], None],
        base_url: str,
        drain: bool = False,
    ) -> None:
        self._claims, self._sandbox, self._stop, self._say = claims, sandbox, stop, say
        self._base_url, self._drain = base_url, drain
        self._api_trouble = Backoff()
        self._sandbox_trouble = Backoff(first=1.0, most=30.0)

    def serve(self) -> None:
        """Claim and run items until told to stop or, when draining, until there are none."""
        pace = Pace()
        while not self._stop.is_set():
            pace.asking()
            try:
                item = self._claims.poll(block=not self._drain)
            except ApiUnavailable as trouble:
                self._unreachable(trouble)
                continue
            except ApiRefused as refused:
                raise WorkerError(self._explained(refused)) from None
            self._reachable()
            if item is not None:
                self._serve_item(item)
            elif self._drain:
                return
            else:
                self._stop.wait(pace.pause())

    def _unreachable(self, trouble: ApiUnavailable) -> None:
        if not self._api_trouble.in_trouble:
            self._say(f"cannot reach {self._base_url} ({trouble}); trying again until it answers")
        self._stop.wait(self._api_trouble.trouble(trouble.retry_after))

    def _reachable(self) -> None:
        if self._api_trouble.in_trouble:
            self._say(f"{self._base_url} answers again")
        self._api_trouble.fine()

    def _serve_item(self, item: WorkItem) -> None:
        self._say(f"work {item.id} claimed ({_subject(item)})")
        if self._stop.is_set() or item.kind != "session":
            # The stop came while the poll was under way; or the queue holds something that only others understand.
            self._say(f"work {item.id} given back")
            self._claims.give_back(item)
            return
        try:
            for remark in self._sandbox.prepare(item):
                self._say(remark)
            if self._acknowledge(item):
                self._run(item)
            self._sandbox_trouble.fine()
        except SandboxNotReady as error:
            # Not acknowledged: it is offered again in half a minute, and others go first meanwhile.
            self._say(f"work {item.id} left alone: {error}")
        except SandboxError as error:
            self._say(f"work {item.id} failed: {error}")
            self._stop.wait(self._sandbox_trouble.trouble())

    def _acknowledge(self, item: WorkItem) -> bool:
        try:
            answer = self._claims.acknowledge(item, self._stop)
        except ApiRefused as refused:
            raise WorkerError(self._explained(refused)) from None
        if answer is not Ack.OURS:
            self._say(f"work {item.id} abandoned: acknowledging it gave {answer.value}")
        return answer is Ack.OURS

    def _run(self, item: WorkItem) -> None:
        running = self._sandbox.start(item)
        try:
            self._say(f"work {item.id} started")
            ended = running.wait(self._stop)
            if ended is None:
                self._say(f"work {item.id} stopping")
                ended = running.stop(STOP_GRACE)
            self._report(item, ended)
        finally:
            self._remove(item, running)

    def _report(self, item: WorkItem, ended: Ended) -> None:
        for line in ended.details:
            self._say(f"work {item.id} said: {line}")
        self._say(f"work {item.id} ended ({_meaning(ended)})")

    def _remove(self, item: WorkItem, running: Running) -> None:
        try:
            running.remove()
        except SandboxError as error:
            self._say(f"work {item.id}: {error}; it will be removed at the next start")

    def _explained(self, refused: ApiRefused) -> str:
        if refused.status in (401, 403):
            return f"{self._base_url} refused the key in MANGO_ENVIRONMENT_KEY: {refused}"
        if refused.status == 404:
            return f"{self._base_url} does not know this environment: {refused}"
        return f"{self._base_url} refused the poll: {refused}"


def _subject(item: WorkItem) -> str:
    return f"session {item.session_id}" if item.kind == "session" else "not a session"


def _meaning(ended: Ended) -> str:
    if ended.code is None:
        return "vanished"
    try:
        return f"exit {ended.code}: {Outcome(ended.code).meaning}"
    except ValueError:
        return f"exit {ended.code}"
