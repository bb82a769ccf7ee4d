"""The cost of decoding: memory as measured by tracemalloc, and steps as the number of function calls."""

from __future__ import annotations

import sys
import tracemalloc
from contextlib import suppress
from types import FunctionType
from typing import Any

from kafkaproto.errors import DecodeError
from kafkaproto.message import Message


def decoding_peak(layout: Message[Any], data: bytes) -> int:
    """Return the peak memory in bytes that decoding or rejecting a message adds."""
    read_or_refuse(layout, data)  # generate the flat code outside the measurement
    # tracemalloc looks up the line of every allocation, which is slow in a long function
    code = layout.decode_flat.__code__.replace(co_linetable=b"")
    decode = FunctionType(code, layout.decode_flat.__globals__)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        with suppress(DecodeError):
            _ = decode(memoryview(data), 0, len(data))
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def decoding_steps(layout: Message[Any], data: bytes) -> int:
    """Return how many functions, including C functions, are called to decode or reject a message."""
    read_or_refuse(layout, data)
    steps = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal steps
        steps += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        read_or_refuse(layout, data)
    finally:
        sys.setprofile(None)
    return steps


def read_or_refuse(layout: Message[Any], data: bytes) -> Any:
    """Return the decoded object, or None if the data are rejected."""
    try:
        return layout.decode(data)
    except DecodeError:
        return None
