"""What a command prints when it is ready."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from importlib.metadata import version

from mango_local.access import Key
from mango_local.addresses import url


def product() -> str:
    """Name and version."""
    return f"Mango {version('mango-agents')}"


def listening(sockets: Sequence[socket.socket], key: Key) -> str:
    """Where to reach it, and what to type next."""
    base, port = url(sockets[0]), sockets[0].getsockname()[1]
    shown = key.token if key.development else '"$MANGO_API_KEY"'
    at = "" if port == 8080 else f" --base-url {base}"
    return (
        f"  listens on  {', '.join(url(each) for each in sockets)}\n"
        "\n"
        "Use it with the stock client:\n"
        f"  export ANTHROPIC_BASE_URL={base}\n"
        f"  export ANTHROPIC_API_KEY={shown}\n"
        "\n"
        "Run the tools of an environment in Docker:\n"
        f"  export MANGO_ENVIRONMENT_KEY={shown}\n"
        f"  mango-worker docker --environment-id env_...{at}"
        f" --sandbox-base-url http://host.docker.internal:{port}\n"
    )


def show(*parts: str) -> None:
    """Prints at once, also into a pipe."""
    print("\n".join(parts), flush=True)
