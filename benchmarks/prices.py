"""List prices of us-east-1 in dollars, without free tiers. They change: look them up before a budget rests on them."""

from __future__ import annotations

MILLION = 1_000_000

GATEWAY_REQUEST = 3.50 / MILLION
"""REST API."""
LAMBDA_CALL = 0.20 / MILLION
LAMBDA_GB_SECOND = 0.0000133334
"""On Arm."""
TRANSITION = 25.0 / MILLION
"""Step Functions Standard."""
WRITE_UNIT = 0.625 / MILLION
READ_UNIT = 0.125 / MILLION
"""DynamoDB on demand."""
QUEUE_CALL = 0.40 / MILLION
ALARM_MONTH = 0.10
KEY_MONTH = 1.00
LOG_GB = 0.50
STORED_GB_MONTH = 0.25
"""DynamoDB; point-in-time recovery adds 0.20."""
