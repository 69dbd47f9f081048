"""What can go wrong, in words an operator can act on. No message ever holds a credential."""


class WorkerError(Exception):
    """Base of the expected failures. `str()` is one line for the operator."""


class ApiRefused(WorkerError):
    """The API answered and said no; repeating the same request cannot help.

    `status` is the HTTP status code.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{message} (HTTP {status})")
        self.status = status


class ApiUnavailable(WorkerError):
    """No usable answer came (no connection, time-out, 408, 409 marked retryable, 429, 5xx).

    The request may or may not have been carried out. `retry_after` is in seconds, 0.0 if the API named none.
    """

    def __init__(self, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class QueueUnavailable(WorkerError):
    """The doorbell's queue gave no usable answer; it may, later."""


class SandboxError(WorkerError):
    """A sandbox could not be created, started, watched or removed."""


class SandboxNotReady(SandboxError):
    """What the operator must prepare for this session is missing; worth trying again later."""


class CredentialError(WorkerError):
    """A secret is missing, too long or not of the form that was agreed."""
