"""The deadline of a request that the controller handles (AD-43)."""

from __future__ import annotations

from kafkaproto.broker.errors import KafkaError
from kafkaproto.error_codes import ErrorCode


def check_timeout(timeout_ms: int) -> None:
    """Raise KafkaError REQUEST_TIMED_OUT (7) if the timeout in the request is 0 or less.

    The deadline of such a request has passed before the controller handles the request.
    """
    if timeout_ms <= 0:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
