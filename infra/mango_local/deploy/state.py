"""What `mango deploy --to local` leaves behind for `mango undeploy` and `mango gateway`."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from mango_local.deploy.endpoint import STAND_IN
from mango_local.deploy.errors import DeployFailed

FILE = "deployment.json"
GATEWAY_FILE = "gateway.env"


@dataclass(slots=True)
class Deployment:
    """One local deployment.

    Attributes:
        endpoint: the emulator's address.
        stack: name of the stack.
        region: the stack's region.
        api_url: base URL of the API.
        outputs: the stack's outputs.
        pid: of the MiniStack that was started for it; 0 if it was there already.
        since: when that process was started, which with the id names it for ever.
    """

    endpoint: str
    stack: str
    region: str
    api_url: str = ""
    outputs: dict[str, str] = field(default_factory=dict)
    pid: int = 0
    since: str = ""

    def gateway_variables(self) -> dict[str, str]:
        """What `mango gateway` must be told."""
        variables = {
            "MANGO_API_URL": self.api_url,
            "MANGO_TABLE": self.outputs.get("TableName", ""),
            "MANGO_BUCKET": self.outputs.get("BucketName", ""),
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": self.region,
        }
        # An emulator checks no credentials, but boto3 wants some; a user's own are not written down.
        stand_ins = {"AWS_ACCESS_KEY_ID": STAND_IN, "AWS_SECRET_ACCESS_KEY": STAND_IN}
        return variables | {name: value for name, value in stand_ins.items() if name not in os.environ}

    def write(self, folder: Path) -> None:
        """Whole or not at all."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".gitignore").write_text("*\n")
        draft = folder / f"{FILE}.new"
        draft.write_text(json.dumps(asdict(self), indent=2) + "\n")
        draft.replace(folder / FILE)
        lines = (f"{name}={value}\n" for name, value in self.gateway_variables().items())
        (folder / GATEWAY_FILE).write_text("".join(lines))


def read(folder: Path) -> Deployment | None:
    """The deployment kept in a folder, or None. Raises `DeployFailed` if the file is damaged."""
    try:
        return Deployment(**json.loads((folder / FILE).read_text()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):
        raise DeployFailed(f"{folder / FILE} is damaged; remove it") from None


def forget(folder: Path) -> None:
    """Removes what was kept."""
    for name in (FILE, GATEWAY_FILE):
        (folder / name).unlink(missing_ok=True)
