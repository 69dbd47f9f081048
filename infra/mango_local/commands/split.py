"""`mango store`, `mango serve` and `mango orchestrate`: the parts of `mango up`, in processes of their own."""

from __future__ import annotations

import logging
from contextlib import ExitStack

from mango_local.commands import options
from mango_local.logs import LogFormat, configure

log = logging.getLogger("mango")


def store(
    data_dir: options.DataDir = options.DEFAULT_DATA_DIR,
    no_durable: options.NoDurable = False,
    store_port: options.StorePort = None,
    verbose: options.Verbose = False,
    log_format: options.Format = LogFormat.TEXT,
) -> None:
    """Run only the store, for `mango serve` and `mango orchestrate`."""
    configure(log_format, verbose=verbose)
    with options.failures_told(), ExitStack() as stack:
        from mango_local.commands import banner
        from mango_local.commands.parts import start_store
        from mango_local.profile import Profile
        from mango_local.stopping import Stopping, leave

        stopping = Stopping()
        running = start_store(stack, data_dir, port=store_port, durable=not no_durable)
        Profile(running.endpoint).prepare()
        banner.show(f"{banner.product()}: the store is ready.", f"  store       {running.endpoint}, data in {data_dir}")
        stopping.wait()
        stack.close()
        leave(0)


def serve(
    port: options.Port = options.DEFAULT_PORT,
    host: options.Host = None,
    store: options.Store = None,
    data_dir: options.DataDir = options.DEFAULT_DATA_DIR,
    verbose: options.Verbose = False,
    log_format: options.Format = LogFormat.TEXT,
) -> None:
    """Run only HTTP and streams, on a store that runs already."""
    configure(log_format, verbose=verbose)
    with options.failures_told():
        from mango.stream.feed import Pace
        from mango_local.access import bootstrap_key
        from mango_local.addresses import DockerBridge, listen
        from mango_local.commands import banner
        from mango_local.commands.parts import store_endpoint
        from mango_local.halves import Serving
        from mango_local.profile import Profile
        from mango_local.starts import QueueOrchestrator, starts_queue
        from mango_local.stopping import Stopping, leave

        stopping = Stopping()
        bridge = DockerBridge()
        key = bootstrap_key()
        profile = Profile(store_endpoint(store, data_dir))
        profile.prepare()
        sockets = listen(host, port, bridge=bridge.address, development=key.development)
        sqs = profile.clients.sqs
        ctx = profile.context(QueueOrchestrator(sqs, starts_queue(profile.clients)), key)

        def ready() -> None:
            banner.show(
                f"{banner.product()} serves; turns need `mango orchestrate` beside it.",
                f"  store       {profile.settings.endpoint_url}",
                banner.listening(sockets, key),
            )

        serving = Serving(ctx, profile, pace=Pace(), access_log=verbose, on_ready=ready)
        stopping.on_stop(serving.stop)
        serving.run(sockets)
        leave(0)


def orchestrate(
    store: options.Store = None,
    data_dir: options.DataDir = options.DEFAULT_DATA_DIR,
    model: options.ModelName = None,
    rounds: options.Rounds = options.DEFAULT_ROUNDS,
    verbose: options.Verbose = False,
    log_format: options.Format = LogFormat.TEXT,
) -> None:
    """Run only the turns, on a store that runs already."""
    configure(log_format, verbose=verbose)
    with options.failures_told():
        from mango.system import SystemClock
        from mango_local.commands import banner
        from mango_local.commands.parts import model_settings, store_endpoint
        from mango_local.halves import Turning, choose_model
        from mango_local.orchestrator import LocalOrchestrator
        from mango_local.profile import Profile
        from mango_local.starts import StartsReceiver, receiving_client, starts_queue
        from mango_local.stopping import Stopping, leave

        stopping = Stopping()
        client = choose_model(model_settings(model))
        orchestrator = LocalOrchestrator(SystemClock(), workers=rounds)
        profile = Profile(store_endpoint(store, data_dir))
        profile.prepare()
        turning = Turning(profile.context(orchestrator, None), client, orchestrator, profile)
        # Others may run turns on the same store, so leases of an earlier life are left to expire.
        turning.start(alone=False)
        receiver = StartsReceiver(receiving_client(profile.settings), starts_queue(profile.clients), orchestrator)
        receiver.start()
        banner.show(
            f"{banner.product()} runs turns.",
            f"  model       {client.name}",
            f"  store       {profile.settings.endpoint_url}",
        )
        stopping.wait()
        receiver.stop()
        turning.stop()
        leave(0)
