"""`KafkaError`: an error that a response carries as a code. Bytes that cannot be decoded raise kafkaproto's DecodeError instead."""

from __future__ import annotations

from kafkaproto.error_codes import ErrorCode

LONGEST_MESSAGE = 1000
"""The maximum length of an error message, in characters. Messages quote text from clients, which may be as long as a string in a request."""
NOT_HOSTED = "This server does not host this topic-partition."
"""Kafka's error message for UNKNOWN_TOPIC_OR_PARTITION (3)."""
MALFORMED = (
    "This most likely occurs because of a request being malformed by the client library or the message was sent to an incompatible broker. "
    "See the broker logs for more details."
)
"""Kafka's default message for INVALID_REQUEST (42)."""


class KafkaError(Exception):
    """An error with one of Kafka's error codes.

    error_code: a number of `kafkaproto.error_codes.ErrorCode`. message: text for people, sent where the response has a field for it, at most
    LONGEST_MESSAGE characters.
    """

    def __init__(self, error_code: int, message: str | None = None) -> None:
        if message is not None and len(message) > LONGEST_MESSAGE:
            message = message[: LONGEST_MESSAGE - 1] + "…"
        super().__init__(message or f"{ErrorCode(error_code).name} ({int(error_code)})")
        self.error_code = int(error_code)
        self.message = message
