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
    from mypy_boto3_sqs.literals import QueueAttributeNameType

RETENTION = 14 * 86_400
"""Seconds; the longest that SQS keeps a message."""
RECEIVES = 5
"""A message that was received so often and never deleted goes to the dead letters."""
_log = logging.getLogger(__name__)
_MISSING = ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist")


class SqsDoorbell:
    """A `Doorbell` whose queues are made with their environments, or when they are first rung.

    Args:
        client: of SQS.
        prefix: of the queues' names, `<prefix>-env-<environment>`.
        retention: seconds that a ring waits for somebody to hear it.
        dead_letters: ARN of the deployment's queue for rings that no worker could deal with; without it they stay
            until their time is over. Nothing depends on them, but somebody should be told of broken workers.
    """

    def __init__(
        self, client: SQSClient, prefix: str, *, retention: int = RETENTION, dead_letters: str | None = None
    ) -> None:
        self._client = client
        self._prefix = prefix
        self._attributes: dict[QueueAttributeNameType, str] = {"MessageRetentionPeriod": str(retention)}
        if dead_letters:
            redrive = {"deadLetterTargetArn": dead_letters, "maxReceiveCount": RECEIVES}
            self._attributes["RedrivePolicy"] = json.dumps(redrive)
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

    def open(self, environment_id: str) -> None:
        """Makes the environment's queue. Never raises: a queue that is missing is made by the first ring."""
        try:
            self.queue_url(environment_id)
        except (ClientError, BotoCoreError) as error:
            _log.warning("the doorbell of %s was not made: %s", environment_id, error)

    def close(self, environment_id: str) -> None:
        """Deletes the environment's queue, if there is one. Never raises: a queue that is left over costs nothing."""
        self._forget(environment_id)
        try:
            url = self._client.get_queue_url(QueueName=self.queue_name(environment_id))["QueueUrl"]
            self._client.delete_queue(QueueUrl=url)
        except (ClientError, BotoCoreError) as error:
            if not isinstance(error, ClientError) or error_code(error) not in _MISSING:
                _log.warning("the doorbell of %s was not removed: %s", environment_id, error)

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
            return self._client.create_queue(QueueName=name, Attributes=self._attributes)["QueueUrl"]
        except ClientError as error:
            if error_code(error) not in ("QueueAlreadyExists", "QueueNameExists"):
                raise
            # It exists with other attributes; whoever set them knows why.
            return self._client.get_queue_url(QueueName=name)["QueueUrl"]

    def _forget(self, environment_id: str) -> None:
        with self._lock:
            self._urls.pop(environment_id, None)
