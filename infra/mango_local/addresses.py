"""Where `mango` listens. The development key is public, so while it is active nobody else may reach the server."""

from __future__ import annotations

import errno
import logging
import socket
import threading
from ipaddress import ip_address, ip_network

log = logging.getLogger("mango.http")

LOOPBACK = ("127.0.0.1", "::1")
DOCKER_SECONDS = 2


class AddressRefused(Exception):
    """The address may not be used, or cannot."""


class DockerBridge:
    """The address by which containers reach this machine, looked up while other things start."""

    def __init__(self) -> None:
        self._address: str | None = None
        self._thread = threading.Thread(target=self._look, name="docker-bridge", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str | None:
        """The gateway of Docker's default bridge; None if Docker does not answer in time."""
        self._thread.join(DOCKER_SECONDS)
        return self._address

    def _look(self) -> None:
        import docker
        import docker.errors
        import requests

        try:
            client = docker.from_env(timeout=DOCKER_SECONDS)
            pools = client.networks.get("bridge").attrs["IPAM"]["Config"] or []
        except (docker.errors.DockerException, requests.RequestException, KeyError) as error:
            log.debug("Docker does not answer: %s", error)
            return
        self._address = gateway(pools)


def gateway(pools: list[dict[str, str]]) -> str | None:
    """The bridge's own IPv4 address. Some engines do not name it: it is then the first of the subnet."""
    for pool in pools:
        network = ip_network(pool["Subnet"])
        if network.version == 4:
            return pool.get("Gateway") or str(network[1])
    return None


def listen(host: str | None, port: int, *, bridge: str | None, development: bool) -> list[socket.socket]:
    """Sockets to serve on, the first being the one to tell people about.

    Without `host`: loopback, and Docker's bridge if there is one. Raises `AddressRefused`.
    """
    if host is not None:
        if development:
            _check_private(host)
        return [_bound(host, port)]
    first = _bound(LOOPBACK[0], port)
    port = first.getsockname()[1]
    others = [LOOPBACK[1], *([bridge] if bridge else [])]
    return [first, *(each for address in others if (each := _bound_if_ours(address, port)) is not None)]


def url(listening: socket.socket) -> str:
    """The base URL of a socket; that of loopback when it takes connections on every address."""
    host, port = listening.getsockname()[:2]
    if ip_address(host).is_unspecified:
        host = LOOPBACK[0]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _check_private(host: str) -> None:
    if host not in ("localhost", *LOOPBACK):
        raise AddressRefused(
            f"not listening on {host}: everybody knows the development key, so while it is active it is accepted on "
            "loopback only. Set MANGO_API_KEY to a secret of your own to listen there."
        )


def _bound(host: str, port: int) -> socket.socket:
    try:
        return _bind(host, port)
    except socket.gaierror as error:
        raise AddressRefused(f"{host} is no address: {error.strerror}") from None
    except OSError as error:
        reason = "another process uses it" if error.errno == errno.EADDRINUSE else error.strerror
        raise AddressRefused(f"cannot listen on {host} port {port}: {reason}. Choose another with --port.") from None


def _bound_if_ours(host: str, port: int) -> socket.socket | None:
    """None where the address is not this machine's: no IPv6, or Docker in a virtual machine of its own."""
    try:
        return _bind(host, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            log.warning("another process listens on %s port %d, so requests there do not reach this one", host, port)
        return None


def _bind(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind(address)
        # Listening at once: a port that is merely bound could be taken from us until the server starts.
        listening.listen(2048)
    except OSError:
        listening.close()
        raise
    listening.setblocking(False)
    return listening
