"""`KafkaError`: a refusal that an answer carries as an error code. Bytes that do not parse are kafkaproto's DecodeError instead."""

from __future__ import annotations


class KafkaError(Exception):
    """error_code: a number of `kafkaproto.error_codes.ErrorCode`. message: for people, sent where the answer has room for it."""

    def __init__(self, error_code: int, message: str | None = None) -> None:
        super().__init__(message or f"error {int(error_code)}")
        self.error_code = int(error_code)
        self.message = message
