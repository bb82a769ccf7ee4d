"""`KafkaError`: a refusal that an answer carries as an error code. Bytes that do not parse are kafkaproto's DecodeError instead."""

from __future__ import annotations

from kafkaproto.error_codes import ErrorCode

LONGEST_MESSAGE = 1000
"""In characters. Messages quote what clients said, which may be as long as a string on the wire can be: with more around it, it is too long."""


class KafkaError(Exception):
    """error_code: a number of `kafkaproto.error_codes.ErrorCode`. message: for people, sent where the answer has room for it;
    cut to LONGEST_MESSAGE.
    """

    def __init__(self, error_code: int, message: str | None = None) -> None:
        if message is not None and len(message) > LONGEST_MESSAGE:
            message = message[: LONGEST_MESSAGE - 1] + "…"
        super().__init__(message or f"{ErrorCode(error_code).name} ({int(error_code)})")
        self.error_code = int(error_code)
        self.message = message
