"""What a user can put right."""

from __future__ import annotations


class DeployFailed(Exception):
    """The deployment could not be made; the message tells why, and what to do."""
