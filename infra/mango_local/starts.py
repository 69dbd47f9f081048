"""Starting turns across processes: `mango serve` sends the ids to a queue, `mango orchestrate` receives them."""

from __future__ import annotations

import json
import logging
import threading
from typing import TYPE_CHECKING, Any

import boto3.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from mango.aws.clients import AwsSettings, Clients
from mango.ports import Orchestrator

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import MessageTypeDef

log = logging.getLogger("mango.starts")

QUEUE = "mango-starts"
POLL_SECONDS = 20
PAUSE_SECONDS = 1.0
HIDDEN_SECONDS = 5
"""A message whose receiver died is seen again after so long; starting twice is harmless."""


def starts_queue(clients: Clients) -> str:
    """The queue's address; it is made if it is missing."""
    attributes: Any = {"VisibilityTimeout": str(HIDDEN_SECONDS), "MessageRetentionPeriod": "3600"}
    return clients.sqs.create_queue(QueueName=QUEUE, Attributes=attributes)["QueueUrl"]


def receiving_client(settings: AwsSettings) -> SQSClient:
    """A client that is patient enough for long polls."""
    session = boto3.session.Session(
        aws_access_key_id=settings.access_key_id,
        aws_secret_access_key=settings.secret_access_key,
        region_name=settings.region,
    )
    config = Config(connect_timeout=2, read_timeout=POLL_SECONDS + 10)
    client: SQSClient = session.client("sqs", endpoint_url=settings.endpoint_url, config=config)
    return client


class QueueOrchestrator:
    """An `Orchestrator` whose executions run in another process."""

    def __init__(self, client: SQSClient, queue_url: str) -> None:
        self._client = client
        self._queue_url = queue_url

    def start(self, session_id: str, thread_id: str, wake: int) -> None:
        """Sends the ids. Does not raise: a start that is lost is made up for by the sweeper."""
        body = json.dumps({"session_id": session_id, "thread_id": thread_id, "wake": wake})
        try:
            self._client.send_message(QueueUrl=self._queue_url, MessageBody=body)
        except (ClientError, BotoCoreError) as error:
            log.warning("the start of %s-%d was not sent: %s", thread_id, wake, error)


class StartsReceiver:
    """The thread that hands starts from the queue to an orchestrator. Messages are deleted whatever comes of them."""

    def __init__(self, client: SQSClient, queue_url: str, orchestrator: Orchestrator) -> None:
        self._client = client
        self._queue_url = queue_url
        self._orchestrator = orchestrator
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="starts", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Takes no more; a poll under way is left behind with the process."""
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._poll()
            except (ClientError, BotoCoreError) as error:
                if not self._stopping.is_set():
                    log.warning("the queue of starts does not answer, again in %g s: %s", PAUSE_SECONDS, error)
                    self._stopping.wait(PAUSE_SECONDS)

    def _poll(self) -> None:
        answer = self._client.receive_message(
            QueueUrl=self._queue_url, MaxNumberOfMessages=10, WaitTimeSeconds=POLL_SECONDS
        )
        messages = answer.get("Messages", [])
        if not messages or self._stopping.is_set():
            return
        for message in messages:
            self._hand_over(message)
        entries: Any = [{"Id": str(n), "ReceiptHandle": each["ReceiptHandle"]} for n, each in enumerate(messages)]
        self._client.delete_message_batch(QueueUrl=self._queue_url, Entries=entries)

    def _hand_over(self, message: MessageTypeDef) -> None:
        try:
            body = json.loads(message["Body"])
            start = (str(body["session_id"]), str(body["thread_id"]), int(body["wake"]))
        except (ValueError, KeyError, TypeError):
            log.warning("not a start: %.200r", message.get("Body"))
            return
        self._orchestrator.start(*start)
