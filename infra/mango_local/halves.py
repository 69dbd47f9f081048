"""The two halves of the embedded profile: answering requests, and running turns."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Sequence

from mango.api.app import create_api
from mango.api.asgi import create_asgi
from mango.api.auth import authenticate_headers
from mango.api.errors import envelope
from mango.model.factory import ModelSettings, model_client
from mango.ports import ModelClient
from mango.services.context import Context
from mango.stream.app import StreamApp
from mango.stream.feed import Pace
from mango.stream.hub import Hub
from mango.turn.context import TurnContext
from mango.turn.round import run_round
from mango.turn.sweep import sweep, void_leases
from mango.turn.trouble import run_trouble
from mango_local.asl import Data
from mango_local.loopback_only import KeepDevelopmentKeyHome
from mango_local.orchestrator import LocalOrchestrator
from mango_local.profile import Profile
from mango_local.server import HttpServer
from mango_local.sweeper import Sweeper

log = logging.getLogger("mango")

ROUND_SECONDS = 5.0
"""How long stopping waits for rounds under way. What is left behind is recovered from the table."""
IDS = ("session_id", "thread_id", "execution")


class Serving:
    """HTTP and streams."""

    def __init__(
        self, ctx: Context, profile: Profile, *, pace: Pace, access_log: bool, on_ready: Callable[[], None]
    ) -> None:
        self._hub = Hub(ctx, pace=pace)
        profile.store.on_commit.append(self._hub.on_commit)
        profile.store.on_ambiguous.append(self._hub.on_ambiguous)
        stream_app = StreamApp(ctx, self._hub, authenticate=authenticate_headers, envelope=envelope)
        app = KeepDevelopmentKeyHome(create_asgi(ctx, create_api(ctx), stream_app=stream_app))
        self._server = HttpServer(app, access_log=access_log, on_ready=on_ready)

    def run(self, sockets: Sequence[socket.socket]) -> None:
        """Serves in this thread until `stop`."""
        self._server.serve_on(sockets)

    def stop(self) -> None:
        """Ends streams at an event boundary, then requests. Does not wait."""
        self._hub.close()
        self._server.stop()


class Turning:
    """The turn loop: the orchestrator of this process and the sweeper."""

    def __init__(self, ctx: Context, model: ModelClient, orchestrator: LocalOrchestrator, profile: Profile) -> None:
        self._turn = TurnContext(ctx, model)
        profile.store.on_commit.append(self._turn.transcripts.observe)
        self._orchestrator = orchestrator
        self._sweeper = Sweeper(self._sweep)
        self._told: set[str] = set()

    def start(self, *, alone: bool) -> None:
        """Begins to run turns. `alone`: nobody else does on this store, so every lease is one of an earlier life."""
        self._orchestrator.begin({"${RoundFunctionArn}": self._round, "${TroubleFunctionArn}": self._trouble})
        if alone:
            void_leases(self._turn.services)
        self._sweeper.start()

    def stop(self) -> None:
        """Bounded: waits for rounds under way, then leaves them to the table."""
        self._sweeper.stop()
        if left := self._orchestrator.stop(ROUND_SECONDS):
            log.warning("left %d rounds under way; they are taken up again at the next start", left)

    def _sweep(self) -> None:
        failed = set(sweep(self._turn.services).failed)
        for failure in failed - self._told:  # what stays broken is told once
            log.error("could not be driven on: %s", failure)
        self._told = failed

    def _round(self, data: Data) -> Data:
        return {**_ids(data), **run_round(self._turn, *_ids(data).values())}

    def _trouble(self, data: Data) -> Data:
        run_trouble(self._turn.services, *_ids(data).values())
        return _ids(data)


def choose_model(settings: ModelSettings) -> ModelClient:
    """The model client; what it needs is imported meanwhile, for that takes a second."""
    client = model_client(settings)
    if settings.kind in ("messages", "bedrock"):
        threading.Thread(target=_import_anthropic, name="import-anthropic", daemon=True).start()
    return client


def _import_anthropic() -> None:
    import anthropic  # noqa: F401


def _ids(data: Data) -> dict[str, str]:
    return {name: data[name] for name in IDS}
