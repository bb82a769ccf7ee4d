"""What decoding costs: memory, as tracemalloc counts it, and steps, as the number of functions called."""

from __future__ import annotations

import sys
import tracemalloc
from contextlib import suppress
from types import FunctionType
from typing import Any

from kafkaproto.errors import DecodeError
from kafkaproto.message import Message


def decoding_peak(layout: Message[Any], data: bytes) -> int:
    """The most bytes that are taken while a message is decoded, or refused, beyond what was taken before."""
    read_or_refuse(layout, data)  # makes the flat code, outside the measurement
    # tracemalloc looks up the line of every allocation, which takes long in a long function
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
    """How many times a function is entered while a message is decoded or refused, those of C included."""
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
    """The object, or None."""
    try:
        return layout.decode(data)
    except DecodeError:
        return None
