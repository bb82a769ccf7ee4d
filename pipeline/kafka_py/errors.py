"""What kafka_py says when it cannot go on. Must never know Spark."""

from __future__ import annotations

from kafkaproto.error_codes import ErrorCode


class OptionError(ValueError):
    """An option that is missing, unknown or wrong; the text begins with its name as the documentation writes it."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"option {name}: {reason}")
        self.name = name


class KafkaError(Exception):
    """What a broker refused. ``code`` is Kafka's error code, ``doing`` what was asked for."""

    def __init__(self, code: int, doing: str) -> None:
        super().__init__(f"{doing}: {error_name(code)}")
        self.code = code


class DataLoss(Exception):
    """Records that were to be read are not there any more, and ``failOnDataLoss`` is true."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} (set failOnDataLoss to false to read what is left)")


def error_name(code: int) -> str:
    """``NOT_LEADER_OR_FOLLOWER``, or the number of a code that is not known."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"
