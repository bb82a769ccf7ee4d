"""Length-prefixed frames."""

from __future__ import annotations

import tracemalloc
from io import BytesIO

import pytest

from kafkaproto.errors import DecodeError
from kafkaproto.frame import (
    PIECE_BYTES,
    finish_frame,
    frame,
    frame_length,
    read_frame,
    spliced_parts,
    split_frames,
    start_frame,
)


def test_start_frame_and_finish_frame_build_the_same_bytes_as_the_frame_function() -> None:
    out = start_frame()
    out += b"payload"
    assert finish_frame(out) == 7 and out == frame(b"payload") == b"\x00\x00\x00\x07payload"


def test_frame_length_includes_record_bytes_that_are_kept_outside_the_frame_buffer() -> None:
    out = start_frame()
    out += b"ab"
    assert finish_frame(out, [(5, b"12345")]) == 7
    assert [bytes(part) for part in spliced_parts(out, [(5, b"12345")])] == [b"\x00\x00\x00\x07a", b"12345", b"b"]
    assert [bytes(part) for part in spliced_parts(out, [])] == [b"\x00\x00\x00\x07ab"]
    assert [bytes(part) for part in spliced_parts(out, [(6, b"1"), (6, b"2")])] == [b"\x00\x00\x00\x07ab", b"1", b"2"]


def test_kafka_frame_length_is_known_after_the_first_four_bytes() -> None:
    assert frame_length(b"\x00\x00\x00") is None
    assert frame_length(b"x\x00\x00\x01\x00", 1) == 256
    with pytest.raises(DecodeError, match="-1"):
        frame_length(b"\xff\xff\xff\xff")


def test_split_frames_function_returns_complete_frames_but_not_a_partial_last_frame() -> None:
    data = frame(b"one") + frame(b"") + frame(b"three") + b"\x00\x00\x00\x02x"
    assert [bytes(payload) for payload in split_frames(memoryview(data))] == [b"one", b"", b"three"]


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES])
def test_read_frame_function_reads_one_frame_and_leaves_the_following_bytes_unread(size: int) -> None:
    payload = bytes(range(251)) * (size // 251 + 1)
    stream = BytesIO(frame(payload[:size]) + b"next")
    assert bytes(read_frame(stream.readinto)) == payload[:size]
    assert stream.read() == b"next"


def test_reading_3_bytes_of_a_2_gib_frame_raises_eof_error_and_uses_little_memory() -> None:
    stream = BytesIO(b"\x7f\xff\xff\xff" + b"abc")
    tracemalloc.start()
    try:
        with pytest.raises(EOFError, match=f"closed after 3 of {2**31 - 1} bytes of a frame"):
            read_frame(stream.readinto)
        assert tracemalloc.get_traced_memory()[1] < 4 * PIECE_BYTES
    finally:
        tracemalloc.stop()
