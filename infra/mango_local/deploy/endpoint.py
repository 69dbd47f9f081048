"""Which emulator is deployed to, and clients of it."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from mango_local.deploy.errors import DeployFailed

DEFAULT_REGION = "us-east-1"
STAND_IN = "test"
"""Emulators check no credentials; this one means their default account."""
ANSWER_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Emulator:
    """An emulator that answers.

    Attributes:
        url: without a slash at its end.
        ministack: whether it is MiniStack, which runs functions as processes of this machine.
    """

    url: str
    ministack: bool
    region: str

    def client(self, service: str) -> Any:
        """A client of one of its services, by LocalStack's own library."""
        from botocore.config import Config
        from localstack_client.session import Session  # type: ignore[import-untyped]

        session = Session(
            aws_access_key_id=os.environ.get("AWS_ACCESS_KEY_ID") or STAND_IN,
            aws_secret_access_key=os.environ.get("AWS_SECRET_ACCESS_KEY") or STAND_IN,
            aws_session_token=os.environ.get("AWS_SESSION_TOKEN") or None,
            region_name=self.region,
            localstack_host=urlsplit(self.url).hostname,
        )
        # The library knows a host and a port; the address as it was given also has a scheme.
        session._service_endpoint_mapping = dict.fromkeys(session._service_endpoint_mapping, self.url)
        return session.client(service, config=Config(retries={"mode": "standard"}, s3={"addressing_style": "path"}))

    def api_url(self, api_id: str, stage: str) -> str:
        """Where it serves a REST API, for the address on AWS does not lead to it."""
        return f"{self.url}/_aws/execute-api/{api_id}/{stage}"


def configured() -> str | None:
    """The address that the environment names, or None."""
    url = os.environ.get("AWS_ENDPOINT_URL", "").strip().rstrip("/")
    if not url:
        host = os.environ.get("LOCALSTACK_HOST", "").strip()
        if not host:
            return None
        url = f"http://{host}" if ":" in host else f"http://{host}:4566"
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise DeployFailed("AWS_ENDPOINT_URL is no http or https URL; write http://host:port")
    if parts.hostname.endswith(("amazonaws.com", "amazonaws.com.cn", "api.aws")):
        raise DeployFailed("AWS_ENDPOINT_URL is AWS itself; leave out --to local, or unset it")
    return url


def region() -> str:
    """The region that the environment names, or the default one."""
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or DEFAULT_REGION


def connect(url: str) -> Emulator:
    """The emulator at an address. Raises `DeployFailed` if none answers there."""
    if not answers(f"{url}/_localstack/health"):
        raise DeployFailed(
            f"nothing answers at {url}/_localstack/health: start the emulator there, or unset AWS_ENDPOINT_URL and "
            "LOCALSTACK_HOST to let Mango start MiniStack"
        )
    return Emulator(url, answers(f"{url}/_ministack/health"), region())


def answers(url: str) -> bool:
    """Whether a GET is answered by 200."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=ANSWER_SECONDS) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False
