"""What a function tells about itself: JSON log lines, metrics in EMF, traces."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import AmazonCloudWatchEMFProvider

from mango.domain.transaction import Transaction
from mango.handlers.measures import Measure, Measures
from mango.handlers.settings import Settings

NAMESPACE = "Mango"
SERVICE = "mango"
"""Name of the root of our loggers, which makes every line of the product go through Powertools."""


class Observing:
    """Of one process.

    Args:
        function: its short name: a dimension of the metrics, and on every line.
    """

    def __init__(self, function: str, settings: Settings) -> None:
        self._function = function
        self._tracing = settings.tracing
        # On stderr: some emulators take stdout for the answer, and wait for a line here.
        self._logger = Logger(service=SERVICE, stream=sys.stderr, utc=True)
        self._metrics = AmazonCloudWatchEMFProvider(
            namespace=NAMESPACE, default_dimensions={"stage": settings.stage, "function": function}
        )
        self._measures = Measures()
        if self._tracing:
            _patch(function)

    @contextmanager
    def invocation(self, context: Any, **ids: str) -> Iterator[None]:
        """Around one invocation: its ids are on every line; its metrics are written at the end, whatever happens."""
        known = {name: value for name, value in ids.items() if value}
        request = {"function": self._function, "request_id": getattr(context, "aws_request_id", "")}
        self._logger.clear_state()
        self._logger.append_keys(**request, **known)
        with ExitStack() as stack:
            stack.callback(self._flush)
            if self._tracing:
                stack.enter_context(_subsegment(self._function, known))
            yield

    def committed(self, transaction: Transaction) -> None:
        """Listener of the store."""
        self.add(self._measures.of(transaction))

    def add(self, measures: Iterable[Measure]) -> None:
        """Counts in this invocation."""
        for measure in measures:
            self._metrics.add_metric(measure.name, measure.unit, measure.value)

    def _flush(self) -> None:
        if self._metrics.metric_set:
            self._metrics.flush_metrics()


def log() -> logging.Logger:
    """Of the handlers themselves."""
    return logging.getLogger("mango.handlers")


def _patch(function: str) -> None:
    """Makes each call to AWS a part of the trace."""
    from aws_lambda_powertools import Tracer

    Tracer(service=f"{SERVICE}-{function}", auto_patch=True, patch_modules=("botocore",))


@contextmanager
def _subsegment(function: str, ids: Mapping[str, str]) -> Iterator[None]:
    from aws_lambda_powertools import Tracer

    with Tracer(service=f"{SERVICE}-{function}").provider.in_subsegment(name=f"## {function}") as segment:
        for name, value in ids.items():
            segment.put_annotation(key=name, value=value)
        yield
