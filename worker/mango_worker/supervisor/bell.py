"""The environment's queue, whose messages name claimable work. Imported only by workers that are given one."""

import json
import os
import queue
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

import boto3.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError

from mango_worker.errors import QueueUnavailable, WorkerError
from mango_worker.supervisor.rung_claims import Ring
from mango_worker.text import one_line

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import MessageTypeDef

WAIT = 20
"""Seconds that one request may wait for a ring: the most that SQS allows."""
LOOK_AT_STOP = 0.25
"""Seconds."""
_MISSING = frozenset({"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"})
_PASSING = frozenset({"ThrottlingException", "Throttling", "RequestThrottled", "OverLimit", "KmsThrottled"})
_AWS_HOST = re.compile(r"sqs\.([a-z0-9-]+)\.(?:amazonaws\.com(?:\.cn)?|api\.aws)")

Heard = Ring | WorkerError | None
Answer = TypeVar("Answer")


class SqsBell:
    """Receives one ring at a time. One that was received and not deleted comes again after the queue's own time.

    Raises:
        WorkerError: at once, when there are no credentials.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._client = _client(url)

    def wait(self, stop: threading.Event) -> Ring | None:
        """The next ring, or None after 20 s of silence or once told to stop.

        Raises:
            QueueUnavailable: no usable answer; another try may help.
            WorkerError: the queue is missing, or the credentials are not good for it.
        """
        # A request under way cannot be ended. If it still gets a ring after the stop, that comes again, to others.
        box: queue.SimpleQueue[Heard] = queue.SimpleQueue()
        threading.Thread(target=self._receive, args=(box,), name="bell", daemon=True).start()
        while not stop.is_set():
            with suppress(queue.Empty):
                heard = box.get(timeout=LOOK_AT_STOP)
                if isinstance(heard, WorkerError):
                    raise heard
                return heard
        return None

    def delete(self, ring: Ring) -> None:
        """Raises as `wait` does."""
        self._ask(lambda: self._client.delete_message(QueueUrl=self._url, ReceiptHandle=ring.receipt))

    def _receive(self, box: "queue.SimpleQueue[Heard]") -> None:
        try:
            answer = self._ask(
                lambda: self._client.receive_message(QueueUrl=self._url, MaxNumberOfMessages=1, WaitTimeSeconds=WAIT)
            )
            messages = answer.get("Messages", [])
            box.put(_ring(messages[0]) if messages else None)
        except WorkerError as error:
            box.put(error)

    def _ask(self, request: Callable[[], Answer]) -> Answer:
        try:
            return request()
        except ClientError as error:
            raise _explained(error, self._url) from None
        except (NoCredentialsError, PartialCredentialsError) as error:
            raise _no_credentials(str(error)) from None
        except BotoCoreError as error:
            raise QueueUnavailable(one_line(str(error), 200)) from None


def _client(url: str) -> "SQSClient":
    parts = urlsplit(url)
    host = _AWS_HOST.fullmatch(parts.hostname or "")
    told = os.environ.get("AWS_ENDPOINT_URL_SQS") or os.environ.get("AWS_ENDPOINT_URL")
    try:
        session = boto3.session.Session()
        if session.get_credentials() is None:
            raise _no_credentials("none found")
        client: SQSClient = session.client(
            "sqs",
            region_name=host[1] if host else session.region_name or "us-east-1",
            # What stands in for AWS is where its queues are, unless the environment says otherwise.
            endpoint_url=None if host or told else f"{parts.scheme}://{parts.netloc}",
            config=Config(
                connect_timeout=5, read_timeout=WAIT + 10, retries={"mode": "standard", "total_max_attempts": 2}
            ),
        )
        return client
    except (BotoCoreError, ValueError) as error:
        raise WorkerError(f"the AWS settings cannot be used: {one_line(str(error), 200)}") from None


def _ring(message: "MessageTypeDef") -> Ring:
    try:
        work_id = json.loads(message["Body"])["work_id"]
    except (ValueError, KeyError, TypeError):
        work_id = None
    return Ring(work_id if isinstance(work_id, str) else "", message["ReceiptHandle"])


def _explained(error: ClientError, url: str) -> WorkerError:
    code = error.response["Error"]["Code"]
    status = error.response["ResponseMetadata"]["HTTPStatusCode"]
    said = one_line(error.response["Error"]["Message"], 200)
    if code in _MISSING:
        return WorkerError(f"there is no queue {url}: it is made with its environment, in the deployment's region")
    if status >= 500 or status == 429 or code in _PASSING:
        return QueueUnavailable(f"{code}: {said}")
    return WorkerError(
        f"AWS refused the use of {url} ({code}: {said}); a worker needs sqs:ReceiveMessage and sqs:DeleteMessage"
    )


def _no_credentials(reason: str) -> WorkerError:
    return WorkerError(
        f"no AWS credentials for the queue ({one_line(reason, 100)}): give them in the environment, a profile or a "
        "role, or leave --queue out to poll over HTTP"
    )
