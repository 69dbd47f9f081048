"""Options that several commands share, and how their failures are told."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from mango_local.logs import LogFormat

DataDir = Annotated[Path, typer.Option("--data-dir", help="Where everything is kept.")]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="Port for HTTP; 0 takes a free one.")]
Host = Annotated[
    str | None,
    typer.Option("--host", help="Address to listen on, instead of loopback and Docker's bridge."),
]
ModelName = Annotated[
    str | None,
    typer.Option("--model", help="offline, messages, bedrock or scripted:<name or file>; else the environment tells."),
]
Rounds = Annotated[int, typer.Option("--rounds", min=1, max=128, help="Model requests at once; more wait their turn.")]
NoDurable = Annotated[
    bool,
    typer.Option("--no-durable", help="Do not wait for the disk: faster; a power cut may lose the last second."),
]
StorePort = Annotated[
    int | None, typer.Option("--store-port", min=1, max=65535, help="Port of the store, instead of any free one.")
]
Store = Annotated[
    str | None, typer.Option("--store", metavar="URL", help="Address of the store; else the one in the data directory.")
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Log every request.")]
Format = Annotated[LogFormat, typer.Option("--log-format", help="How to log.")]

DEFAULT_DATA_DIR = Path(".mango")
DEFAULT_PORT = 8080
DEFAULT_ROUNDS = 32


@contextmanager
def failures_told() -> Iterator[None]:
    """Turns what a user can put right into one line and exit code 1."""
    from mango.model.factory import ModelSettingsError
    from mango_local.access import KeyRefused
    from mango_local.addresses import AddressRefused
    from mango_local.asl import UnsupportedMachine
    from mango_local.lock import AlreadyLocked, DataDirUnusable
    from mango_local.profile import NoStore
    from mango_local.roto import StoreFailed
    from mango_local.upstream import GatewayRefused

    places = (AddressRefused, AlreadyLocked, DataDirUnusable, NoStore, StoreFailed)
    settings = (GatewayRefused, KeyRefused, ModelSettingsError, UnsupportedMachine)
    try:
        yield
    except (*places, *settings) as error:
        print(f"mango: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
