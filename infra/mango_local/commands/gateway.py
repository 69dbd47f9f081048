"""`mango gateway`: streams for deployments whose own gateway cannot stream."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from mango_local.commands import options
from mango_local.logs import LogFormat, configure

ApiUrl = Annotated[str, typer.Option("--api-url", envvar="MANGO_API_URL", help="Where the deployed API is.")]


def gateway(
    api_url: ApiUrl,
    port: options.Port = options.DEFAULT_PORT,
    host: options.Host = None,
    verbose: options.Verbose = False,
    log_format: options.Format = LogFormat.TEXT,
) -> None:
    """Serve streams from a deployed table, and pass everything else through to the deployed API."""
    configure(log_format, verbose=verbose)
    with options.failures_told():
        from mango_local.access import bootstrap_key
        from mango_local.addresses import DockerBridge, listen
        from mango_local.commands import banner
        from mango_local.gateway import GatewayServer, read_settings
        from mango_local.stopping import Stopping, leave
        from mango_local.upstream import Upstream

        stopping = Stopping()
        settings = read_settings(os.environ)
        upstream = Upstream.read(api_url)
        key = bootstrap_key()
        # An emulated deployment knows the development key, unless the operator has one of their own.
        open_to_all = settings.endpoint_url is not None and key.development
        bridge = DockerBridge().address if host is None else None
        sockets = listen(host, port, bridge=bridge, development=open_to_all)

        def ready() -> None:
            banner.show(
                f"{banner.product()} serves streams, and passes everything else through.",
                f"  API         {upstream.origin}{upstream.prefix}",
                f"  table       {settings.table} at {settings.endpoint_url or f'AWS in {settings.region}'}",
                banner.listening(sockets, key),
            )

        server = GatewayServer(settings, upstream, access_log=verbose, on_ready=ready)
        stopping.on_stop(server.stop)
        server.run(sockets)
        leave(0)
