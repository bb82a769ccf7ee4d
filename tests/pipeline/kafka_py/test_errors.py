"""Errors that Spark prints contain their text and no internal traceback frames."""

from __future__ import annotations

import traceback

import pytest

from kafkaproto.pipeline.kafka_py.errors import KafkaError, OptionError, without_our_frames


@pytest.mark.parametrize("error", [OptionError("topic", "is missing"), KafkaError(3, "cannot look up topic nope")])
def test_spark_kafka_py_tracebacks_show_no_internal_frames_or_chained_exceptions(error: Exception) -> None:
    def fail() -> None:
        try:
            raise OSError("a first attempt")
        except OSError:
            raise error  # noqa: B904 - as until_done does

    with pytest.raises(type(error)) as caught:
        without_our_frames(fail)()
    printed = "".join(traceback.format_exception(caught.value))
    assert "in fail" not in printed and "a first attempt" not in printed
    assert printed.rstrip().endswith(str(error))
