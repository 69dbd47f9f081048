"""Creates, updates and deletes the stack through CloudFormation."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from mango_local.deploy.errors import DeployFailed

CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]
WAIT_SECONDS = 600.0
_GONE = ("ValidationError", "ResourceNotFoundException")


class Stack:
    """One stack, by name."""

    def __init__(self, client: Any, name: str) -> None:
        self._client = client
        self.name = name

    def status(self) -> str | None:
        """Its status, or None when there is none."""
        found = self._describe()
        return None if found is None or found["StackStatus"] == "DELETE_COMPLETE" else str(found["StackStatus"])

    def apply(self, template_url: str, parameters: Mapping[str, str]) -> str:
        """Creates or updates it; tells which: `created`, `updated` or `unchanged`. Raises `DeployFailed`."""
        request: dict[str, Any] = {
            "StackName": self.name,
            "TemplateURL": template_url,
            "Parameters": [{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()],
            "Capabilities": CAPABILITIES,
        }
        status = self.status()
        if status in ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "CREATE_FAILED", "DELETE_FAILED"):
            self.delete()  # a stack that was never made whole cannot be updated
            status = None
        try:
            if status is None:
                self._client.create_stack(**request)
            else:
                self._client.update_stack(**request)
        except ClientError as error:
            if "No updates are to be performed" in str(error):
                return "unchanged"
            raise DeployFailed(f"CloudFormation refuses the stack {self.name}: {error}") from None
        self._settle()
        return "created" if status is None else "updated"

    def outputs(self) -> dict[str, str]:
        """Its outputs by name."""
        found = self._describe() or {}
        return {each["OutputKey"]: each["OutputValue"] for each in found.get("Outputs", [])}

    def resource(self, logical_id: str) -> str:
        """The physical id of one of its resources."""
        answer = self._client.describe_stack_resource(StackName=self.name, LogicalResourceId=logical_id)
        return str(answer["StackResourceDetail"]["PhysicalResourceId"])

    def delete(self) -> None:
        """Deletes it; no error when it is missing. What the template retains stays."""
        self._client.delete_stack(StackName=self.name)
        deadline = time.monotonic() + WAIT_SECONDS
        while (status := self.status()) is not None:
            if status == "DELETE_FAILED" or time.monotonic() > deadline:
                raise DeployFailed(f"the stack {self.name} cannot be deleted: {status}: {self._reasons()}")
            time.sleep(0.2)

    def _settle(self) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while (status := self.status() or "").endswith("_IN_PROGRESS"):
            if time.monotonic() > deadline:
                raise DeployFailed(f"the stack {self.name} is still {status} after {WAIT_SECONDS:.0f} s")
            time.sleep(0.2)
        if status not in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
            raise DeployFailed(f"the stack {self.name} is {status}: {self._reasons()}")

    def _describe(self) -> dict[str, Any] | None:
        try:
            stacks = self._client.describe_stacks(StackName=self.name)["Stacks"]
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") in _GONE:
                return None
            raise DeployFailed(f"CloudFormation does not answer for {self.name}: {error}") from None
        return stacks[0] if stacks else None

    def _reasons(self) -> str:
        events = self._client.describe_stack_events(StackName=self.name)["StackEvents"]
        failed = [each for each in events if str(each.get("ResourceStatus", "")).endswith("FAILED")]
        reasons = [f"{each['LogicalResourceId']}: {each.get('ResourceStatusReason', 'no reason')}" for each in failed]
        return "; ".join(reversed(reasons[:5])) or "no reason was given"
