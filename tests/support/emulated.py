"""A real deployment of template.yaml on a MiniStack of its own, with the interface of `tests.support.deployment`."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from types import TracebackType

import httpx
import pytest
from anthropic import Anthropic, AsyncAnthropic

from mango.model.factory import ModelSettings
from mango_local.access import Key
from mango_local.deploy import local, tools
from mango_local.deploy.endpoint import Emulator, connect
from mango_local.deploy.errors import DeployFailed
from mango_local.deploy.state import Deployment as Deployed
from tests.support.deployment import BIN, KEY, READY_SECONDS, Deployment, close_all, free_port

STACK = "mango-test"


def require_tools() -> None:
    """Skips the test where MiniStack or SAM's translator cannot be installed; not in CI."""
    try:
        for tool in (tools.MINISTACK, tools.SAM_TRANSLATOR, tools.RUNTIME_CLIENT):
            tools.environment(tool)
    except DeployFailed as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no emulator: {error}")


class EmulatedDeployment:
    """MiniStack with the whole stack, and `mango gateway` before it. What it holds is lost when it stops.

    `url` is the gateway's, through which requests reach the API's own URL, `deployed.api_url`.
    """

    def __init__(self, data_dir: Path, model: str = "offline", think_seconds: float = 0.0) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.data_dir = data_dir
        self.log = data_dir.parent / f"{data_dir.name}.log"
        self.said: list[str] = []
        environment = {"MANGO_MODEL": model, "MANGO_OFFLINE_THINK_SECONDS": str(think_seconds)}
        self._model = ModelSettings.from_environment(environment)
        self._deployed: Deployed | None = None
        self._gateway: subprocess.Popen[bytes] | None = None
        self._clients: list[Anthropic] = []

    def __enter__(self) -> EmulatedDeployment:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def deployed(self) -> Deployed:
        """The stack's outputs and addresses."""
        assert self._deployed is not None
        return self._deployed

    @property
    def emulator(self) -> Emulator:
        """For clients of the emulator's services."""
        return connect(self.deployed.endpoint)

    def start(self) -> float:
        """Deploys and waits until the gateway is ready; returns how long that took, in seconds."""
        require_tools()
        began = time.monotonic()
        wanted = local.Wanted(self.data_dir, STACK, free_port(), self._model)
        self._deployed = local.deploy(wanted, Key(KEY), self.said.append)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("MANGO_", "AWS_"))}
        environment |= self._deployed.gateway_variables()
        with self.log.open("ab") as log:
            command = [str(BIN / "mango"), "gateway", "--port", str(self.port)]
            self._gateway = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        waiting_since = time.monotonic()
        while not self._ready():
            if self._gateway.poll() is not None or time.monotonic() - waiting_since > READY_SECONDS:
                raise AssertionError(f"mango gateway did not get ready:\n{self.log.read_text()[-4000:]}")
            time.sleep(0.02)
        return time.monotonic() - began

    def _ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz", timeout=5).status_code == 200
        except httpx.TransportError:
            return False

    def stop(self, seconds: float = 20) -> int:
        """Ends the gateway and the emulator; the gateway's exit code."""
        close_all(self._clients)
        code = 0
        if self._gateway is not None:
            self._gateway.send_signal(signal.SIGTERM)
            try:
                code = self._gateway.wait(seconds)
            except subprocess.TimeoutExpired:
                self._gateway.kill()
                self._gateway.wait()
                raise AssertionError(f"mango gateway did not stop:\n{self.log.read_text()[-4000:]}") from None
            finally:
                self._gateway = None
                local.undeploy(self.data_dir, self.said.append)
            return code
        local.undeploy(self.data_dir, self.said.append)
        return code

    def client(self, max_retries: int = 0) -> Anthropic:
        """A client that `stop` closes."""
        client = Anthropic(
            base_url=self.url, api_key=KEY, max_retries=max_retries, _strict_response_validation=True, timeout=60
        )
        self._clients.append(client)
        return client

    def async_client(self) -> AsyncAnthropic:
        return AsyncAnthropic(base_url=self.url, api_key=KEY, _strict_response_validation=True, timeout=60)

    def http(self, key: str | None = KEY) -> httpx.Client:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60)


PROFILES: dict[str, type[Deployment] | type[EmulatedDeployment]] = {
    "embedded": Deployment,
    "emulated": EmulatedDeployment,
}
"""For fixtures: `params=PROFILES`."""
