"""`mango up`: everything in one process, with its store as a child."""

from __future__ import annotations

import logging
from contextlib import ExitStack

from mango_local.commands import options
from mango_local.logs import LogFormat, configure

log = logging.getLogger("mango")


REMEMBERED = 1024
"""Sessions whose last state this process keeps, so that a busy one needs no reads."""


def up(
    port: options.Port = options.DEFAULT_PORT,
    host: options.Host = None,
    data_dir: options.DataDir = options.DEFAULT_DATA_DIR,
    model: options.ModelName = None,
    rounds: options.Rounds = options.DEFAULT_ROUNDS,
    no_durable: options.NoDurable = False,
    store_port: options.StorePort = None,
    verbose: options.Verbose = False,
    log_format: options.Format = LogFormat.TEXT,
) -> None:
    """Run Mango on this machine."""
    configure(log_format, verbose=verbose)
    with options.failures_told(), ExitStack() as stack:
        from mango.stream.feed import Pace
        from mango.system import SystemClock
        from mango_local.access import bootstrap_key
        from mango_local.addresses import DockerBridge, listen
        from mango_local.commands import banner
        from mango_local.commands.parts import model_settings, start_store
        from mango_local.halves import Serving, Turning, choose_model
        from mango_local.orchestrator import LocalOrchestrator
        from mango_local.profile import Profile
        from mango_local.stopping import Stopping, leave

        stopping = Stopping()
        bridge = DockerBridge()
        key = bootstrap_key()
        client = choose_model(model_settings(model))
        orchestrator = LocalOrchestrator(SystemClock(), workers=rounds)
        sockets = listen(host, port, bridge=bridge.address, development=key.development)
        store = start_store(stack, data_dir, port=store_port, durable=not no_durable)
        profile = Profile(store.endpoint)
        profile.prepare()
        ctx = profile.context(orchestrator, key, remember=REMEMBERED)

        def ready() -> None:
            banner.show(
                f"{banner.product()} is ready.",
                f"  model       {client.name}",
                f"  store       {store.endpoint}, data in {data_dir}",
                banner.listening(sockets, key),
            )

        # Every commit of this store is made by this process, so streams hear of them all, but for those whose answer
        # was lost: it is for these that they look.
        serving = Serving(ctx, profile, pace=Pace(5.0, 15.0), access_log=verbose, on_ready=ready)
        turning = Turning(ctx, client, orchestrator, profile)
        turning.start(alone=True)
        stack.callback(turning.stop)
        stopping.on_stop(serving.stop)
        serving.run(sockets)
        stack.close()
        leave(0)
