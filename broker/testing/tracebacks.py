"""Shorter tracebacks of failed tests: the traceback of an error that a test caused ends at the test's own line."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.errors import KafkaError

_OF_THE_TEST = (KafkaError, TimeoutError, TypeError, ValueError)


def is_hidden(excinfo: Any) -> bool:
    """Return whether pytest should hide a module's frames in the traceback of an error: True for errors that the test itself caused.

    excinfo: pytest's `ExceptionInfo` of the error. A module assigns this function to `__tracebackhide__`. The pytest option `--full-trace` shows
    the frames nevertheless.
    """
    return isinstance(excinfo.value, _OF_THE_TEST)


class without_frames_of_the_broker:
    """A context manager that shortens the traceback of an error raised in its block: frames of functions called in the block are removed.

    This affects only KafkaError, ConfigError and the exception classes that the constructor gets; other errors keep their full traceback.
    """

    def __init__(self, *kinds: type[Exception]) -> None:
        self._kinds = (KafkaError, ConfigError, *kinds)

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and isinstance(error, self._kinds):
            raise error.with_traceback(None) from None


__tracebackhide__ = is_hidden
