"""The doorbell on SQS: one queue per environment, whose messages name work and carry nothing else."""

from __future__ import annotations

import json
import logging
import threading
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from mango.aws.failures import error_code

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

DAY = 86_400
_log = logging.getLogger(__name__)
_MISSING = ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist")


class SqsDoorbell:
    """A `Doorbell` whose queues are made when they are first rung.

    Args:
        client: of SQS.
        prefix: of the queues' names, `<prefix>-env-<environment>`.
        retention: seconds that a ring waits for somebody to hear it.
    """

    def __init__(self, client: SQSClient, prefix: str, *, retention: int = DAY) -> None:
        self._client = client
        self._prefix = prefix
        self._retention = retention
        self._urls: dict[str, str] = {}
        self._lock = threading.Lock()

    @property
    def hears(self) -> bool:
        """False: whoever can reach the queue receives from it directly."""
        return False

    def queue_name(self, environment_id: str) -> str:
        """The name of an environment's queue."""
        return f"{self._prefix}-env-{environment_id}"

    def queue_url(self, environment_id: str) -> str:
        """The address of an environment's queue, which is made if it is missing."""
        with self._lock:
            url = self._urls.get(environment_id)
        if url is None:
            url = self._create(self.queue_name(environment_id))
            with self._lock:
                self._urls[environment_id] = url
        return url

    def ring(self, environment_id: str, work_id: str) -> None:
        """Sends the work's id. Never raises: a ring that is lost is rung again by the sweeper."""
        body = json.dumps({"work_id": work_id})
        try:
            try:
                self._client.send_message(QueueUrl=self.queue_url(environment_id), MessageBody=body)
            except ClientError as error:
                if error_code(error) not in _MISSING:
                    raise
                # Somebody deleted the queue since its address was learnt.
                self._forget(environment_id)
                self._client.send_message(QueueUrl=self.queue_url(environment_id), MessageBody=body)
        except (ClientError, BotoCoreError) as error:
            _log.warning("the doorbell of %s did not ring for %s: %s", environment_id, work_id, error)

    def wait(self, environment_id: str, seconds: float) -> bool:
        """Returns at once."""
        return False

    def _create(self, name: str) -> str:
        try:
            return self._client.create_queue(
                QueueName=name, Attributes={"MessageRetentionPeriod": str(self._retention)}
            )["QueueUrl"]
        except ClientError as error:
            if error_code(error) not in ("QueueAlreadyExists", "QueueNameExists"):
                raise
            # It exists with other attributes; whoever set them knows why.
            return self._client.get_queue_url(QueueName=name)["QueueUrl"]

    def _forget(self, environment_id: str) -> None:
        with self._lock:
            self._urls.pop(environment_id, None)
