"""The errors of kafka_py. This module does not depend on Spark."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from kafkaproto.error_codes import ErrorCode

P = ParamSpec("P")
T = TypeVar("T")


class OptionError(ValueError):
    """Raised for a missing, unknown or invalid option. The text begins with the option's name as the documentation writes it."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"option {name}: {reason}")
        self.name = name


def without_our_frames(method: Callable[P, T]) -> Callable[P, T]:
    """Return a wrapper for a method that Spark calls. The wrapper shortens the traceback of an OptionError or KafkaError from the method.

    It removes the frames of this package from the traceback, and hides the exception that caused the error. Spark prints tracebacks to the user, for
    whom frames of this package would be of no use.
    """

    @functools.wraps(method)
    def called(*args: P.args, **options: P.kwargs) -> T:
        try:
            return method(*args, **options)
        except (OptionError, KafkaError) as error:
            raise error.with_traceback(None) from None

    return called


class KafkaError(Exception):
    """Raised if a broker rejected a request. code: Kafka's error code. doing: text that says which operation failed."""

    def __init__(self, code: int, doing: str) -> None:
        super().__init__(f"{doing}: {error_name(code)}")
        self.code = code


class DataLoss(Exception):
    """Raised if records of the requested range no longer exist and ``failOnDataLoss`` is true."""

    def __init__(self, loss: str) -> None:
        super().__init__(f"{loss} (set failOnDataLoss to false to read what is left)")


def error_name(code: int) -> str:
    """Return the name of an error code, such as ``NOT_LEADER_OR_FOLLOWER``. For an unknown code, return text such as ``error 999``."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"
