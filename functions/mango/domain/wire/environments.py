"""Inputs of the environment routes."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, Tag

from mango.domain.wire.base import Many, Metadata, Name, Text, WireModel, below, by_type, unsupported
from mango.domain.wire.errors import fault
from mango.domain.wire.query import Flag, QueryModel, WholeNumber

MAX_DESCRIPTION = 2048
_HOST = re.compile(r"(\*\.)?([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.I | re.ASCII)


def _host(text: str) -> str:
    if len(text) > 253 or not _HOST.fullmatch(text):
        raise fault("must be a host name or `*.` before one, without scheme, port or path")
    return text


Host = Annotated[str, AfterValidator(_host)]
Packages = Annotated[Many[Annotated[Text, Field(min_length=1, max_length=256)]], Field(max_length=256)]


class UnrestrictedNetwork(WireModel):
    type: Literal["unrestricted"]


class LimitedNetwork(WireModel):
    type: Literal["limited"]
    allow_mcp_servers: bool | None = None
    allow_package_managers: bool | None = None
    allowed_hosts: Annotated[Many[Host], Field(max_length=256)] | None = None


Network = Annotated[
    Annotated[UnrestrictedNetwork, Tag("<unrestricted>")] | Annotated[LimitedNetwork, Tag("<limited>")],
    by_type("unrestricted", "limited"),
]


class PackageLists(WireModel):
    type: Literal["packages"] = "packages"
    apt: Packages | None = None
    cargo: Packages | None = None
    gem: Packages | None = None
    go: Packages | None = None
    npm: Packages | None = None
    pip: Packages | None = None


class CloudConfig(WireModel):
    type: Literal["cloud"]
    networking: Network | None = None
    packages: PackageLists | None = None

    def check_supported(self, at: str) -> None:
        raise unsupported(below(at, "type"), "an environment of type 'cloud'")


class SelfHostedConfig(WireModel):
    type: Literal["self_hosted"]


Config = Annotated[
    Annotated[CloudConfig, Tag("<cloud>")] | Annotated[SelfHostedConfig, Tag("<self_hosted>")],
    by_type("cloud", "self_hosted"),
]


class EnvironmentCreate(WireModel):
    """Without `config` the environment is self-hosted (decision 4)."""

    name: Name
    config: Config | None = None
    description: Annotated[Text, Field(max_length=MAX_DESCRIPTION)] | None = None
    metadata: Metadata = Field(default_factory=dict)
    scope: Literal["organization", "account"] | None = None

    def check_supported(self, at: str) -> None:
        if self.config is not None:
            self.config.check_supported(below(at, "config"))
        if self.scope == "account":
            raise unsupported(below(at, "scope"), "scope 'account'")


class EnvironmentListQuery(QueryModel):
    include_archived: Flag = False
    limit: Annotated[WholeNumber, Field(ge=1, le=1000)] = 100
    page: str | None = None
