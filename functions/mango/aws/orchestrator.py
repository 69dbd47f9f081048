"""Turn executions on Step Functions Standard: the name of an execution is what makes a repeated start harmless."""

from __future__ import annotations

import json
import logging
import random
import time
from collections.abc import Callable
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from mango.aws.failures import error_code, status

_log = logging.getLogger(__name__)

NAME_LIMIT = 80
"""Characters that Step Functions takes as an execution's name. Ours are ids of 29 and a number."""
TRIES = 3
SECONDS = 3.0
"""No start is tried again later than this after its first try: a client may be waiting, and the sweeper is not."""
_FIRST_PAUSE = 0.1
_BUSY = frozenset(
    {
        "ThrottlingException",
        "Throttling",
        "ThrottledException",
        "TooManyRequestsException",
        "RequestLimitExceeded",
        "ExecutionLimitExceeded",
        "RequestTimeout",
        "RequestTimeoutException",
    }
)


class StepFunctionsOrchestrator:
    """An `Orchestrator` whose executions Step Functions runs.

    A start that fails is left to the sweeper: whoever raised `wake` has set `due` in the same transaction.

    Args:
        client: of Step Functions, made so that it does not repeat requests by itself.
        state_machine_arn: of the turn's state machine.
        sleep: for tests.
    """

    def __init__(self, client: Any, state_machine_arn: str, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._client = client
        self._state_machine_arn = state_machine_arn
        self._sleep = sleep

    def start(self, session_id: str, thread_id: str, wake: int) -> None:
        """Starts execution `<thread>-<wake>` with ids as its input. Does not raise."""
        name = f"{thread_id}-{wake}"
        given = {"session_id": session_id, "thread_id": thread_id, "execution": name}
        request = {"stateMachineArn": self._state_machine_arn, "name": name, "input": json.dumps(given)}
        began = time.monotonic()
        for attempt in range(1, TRIES + 1):
            try:
                self._client.start_execution(**request)
                return
            except (ClientError, BotoCoreError) as error:
                if _exists(error):
                    return
                if attempt == TRIES or not _may_help(error) or time.monotonic() - began > SECONDS:
                    _log.warning("execution %s was not started and is left to the sweeper: %s", name, error)
                    return
            self._pause(attempt)

    def _pause(self, attempt: int) -> None:
        longest = _FIRST_PAUSE * 2**attempt
        self._sleep(random.uniform(longest / 4, longest))  # noqa: S311 - spreads retries, keeps no secret


def _exists(error: Exception) -> bool:
    """Somebody started this number already, perhaps this call, whose first answer was lost."""
    return isinstance(error, ClientError) and error_code(error) == "ExecutionAlreadyExists"


def _may_help(error: Exception) -> bool:
    """Whether another try may succeed. A repeated start of the same name and input is the same start."""
    if not isinstance(error, ClientError):
        return True
    return error_code(error) in _BUSY or status(error) >= 500
