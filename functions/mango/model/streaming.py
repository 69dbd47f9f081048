"""One streamed request through the `anthropic` library; what it calls, and as whom, is up to the subclasses.

The library is imported by the first request, in the thread that makes it: it takes more than a second. Events are
taken as plain objects, not as the library's models, so that whatever a provider adds survives in the transcript.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mango.model.assembly import Assembly, CutOff, MalformedStream
from mango.model.body import request_body, request_headers
from mango.model.connection import TimeLimitReached, read_events
from mango.model.errors import permanent_error, status_error, transport_error
from mango.ports import Cancellation, ModelAnswer, ModelRequest

if TYPE_CHECKING:
    import anthropic
    import httpx2

TIME_LIMIT = 780.0
"""Seconds a request may take in all; a turn round on Lambda has 15 minutes and needs some for its commits."""
IDLE_LIMIT = 300.0
"""Seconds of silence after which the connection counts as dead; long prompts are read in silence by some servers."""

MAX_TOKENS = 16_384
"""Output limit of a request, in tokens; a long file written in one tool call must fit."""


class StreamingModel(ABC):
    """Makes requests, each on a connection of its own; safe for many threads."""

    def __init__(self, secrets: tuple[str, ...], time_limit: float, idle_limit: float, max_tokens: int) -> None:
        self._secrets = secrets
        self._time_limit = time_limit
        self._idle_limit = idle_limit
        self._max_tokens = max_tokens

    @property
    @abstractmethod
    def name(self) -> str:
        """See `ModelClient.name`."""

    @abstractmethod
    def _client(self, http_client: httpx2.Client) -> anthropic.Anthropic | anthropic.AnthropicBedrock:
        """The library's client on this HTTP client, without retries."""

    def _headers(self) -> Mapping[str, str | anthropic.Omit]:
        """Headers where the library's own are not right."""
        return {}

    def request(
        self,
        request: ModelRequest,
        cancellation: Cancellation,
        on_text: Callable[[int, str], None] | None = None,
    ) -> ModelAnswer:
        """See `ModelClient.request`."""
        assembly = Assembly(on_text)
        events = read_events(
            lambda http_client: self._post(http_client, request), cancellation, self._time_limit, self._idle_limit
        )
        try:
            for event in events:
                assembly.take(event)
                if assembly.answer is not None:
                    return assembly.answer
        except TimeLimitReached:
            raise transport_error(f"the model did not finish within {self._time_limit:g} s") from None
        except CutOff:
            raise permanent_error(
                f"the answer reached its limit of {request.max_tokens or self._max_tokens} tokens in the middle of a "
                "tool call; raise MANGO_MODEL_MAX_TOKENS, or have the agent work in smaller steps"
            ) from None
        except MalformedStream as malformed:
            raise transport_error(f"the model endpoint sent a malformed stream: {malformed}") from None
        finally:
            events.close()
        raise transport_error("the model endpoint's stream ended before the answer was complete")

    def _post(self, http_client: httpx2.Client, request: ModelRequest) -> Iterator[Any]:
        """The events as they arrive; errors of the library and of all below it as `ModelError`."""
        import anthropic
        import httpx2

        try:
            with self._open(http_client, request) as events:
                yield from events
        except anthropic.APIStatusError as error:
            raise status_error(error.status_code, error.response.headers, error.body, self._secrets) from None
        except anthropic.APIConnectionError as error:
            what = "the connection to the model endpoint failed"
            raise transport_error(what, error.__cause__, self._secrets) from None
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            raise transport_error("the connection to the model endpoint broke", error, self._secrets) from None
        except ValueError:
            raise transport_error("the model endpoint sent a malformed stream: an event is no JSON") from None

    def _open(self, http_client: httpx2.Client, request: ModelRequest) -> anthropic.Stream[object]:
        import anthropic

        try:
            return self._client(http_client).post(
                "/v1/messages",
                cast_to=object,
                body=request_body(request, self._max_tokens),
                options={"headers": {**request_headers(request), **self._headers()}},
                stream=True,
                stream_cls=anthropic.Stream[object],
            )
        except ValueError as error:
            # A lone surrogate in a text, a model id that fits in no path: nothing was sent, nor ever can be.
            raise permanent_error(f"the request cannot be sent ({type(error).__name__})") from None
