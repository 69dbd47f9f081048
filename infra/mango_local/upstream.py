"""Where the API is that `mango gateway` passes requests to."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Self
from urllib.parse import urlsplit


class GatewayRefused(ValueError):
    """The gateway cannot start with what it was given; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """Where the API is.

    Attributes:
        origin: scheme, host and port to connect to.
        prefix: path before that of every request: a stage, or an emulator's own.
        host: the `Host` header, by which an emulator knows which API is meant.
    """

    origin: str
    prefix: str
    host: str

    @classmethod
    def read(cls, url: str) -> Self:
        """Names below `.localhost` are this machine's loopback, also where nobody resolves them.

        Raises:
            GatewayRefused: it is no http or https URL.
        """
        try:
            parts = urlsplit(url.strip())
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)
            name, port = parts.hostname or "", parts.port
        except ValueError:
            usable = False
        if not usable or "@" in parts.netloc:
            raise GatewayRefused("the API's URL must look like https://host[:port][/stage]")
        if name == "localhost" or name.endswith(".localhost"):
            name = "127.0.0.1"
        shown = f"[{name}]" if ":" in name else name
        origin = f"{parts.scheme}://{shown}" + (f":{port}" if port else "")
        return cls(origin, parts.path.rstrip("/"), parts.netloc)

    @property
    def near(self) -> bool:
        """Whether it is on this machine, where no proxy reaches it."""
        try:
            return ip_address(urlsplit(self.origin).hostname or "").is_loopback
        except ValueError:
            return False
