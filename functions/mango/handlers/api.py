"""Lambda entry point of the API, behind API Gateway's proxy integration."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from mango.api.app import Api, create_api
from mango.handlers.observing import Observing, log
from mango.handlers.settings import DrivingSettings
from mango.handlers.wiring import driving_context, make_parts, started_by_lambda

Json = dict[str, Any]

_SESSION = re.compile(r"/v1/sessions/([^/]+)(?:/threads/([^/]+))?")


class _Process(NamedTuple):
    api: Api
    observing: Observing


@cache
def _process() -> _Process:
    settings = DrivingSettings.read(os.environ)
    parts = make_parts("api", settings)
    return _Process(create_api(driving_context(settings, parts)), parts.observing)


def handler(event: Mapping[str, Any], context: Any) -> Json:
    """Answers one request; every error is an answer too."""
    process = _process()
    with process.observing.invocation(context, **_ids(str(event.get("path") or ""))):
        answer = process.api(event, context)
        status, request_id = answer["statusCode"], answer["headers"]["request-id"]
        # The id that the client has, so that what it reports can be found beside the lines of this invocation.
        extra = {"status": status, "api_request_id": request_id, "method": event.get("httpMethod")}
        log().log(logging.ERROR if status >= 500 else logging.INFO, "answered", extra=extra)
        return answer


def _ids(path: str) -> dict[str, str]:
    match = _SESSION.match(path)
    return {"session_id": match[1] or "", "thread_id": match[2] or ""} if match else {}


if started_by_lambda():
    _process()
