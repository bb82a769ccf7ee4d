"""Reassembly of one TCP direction: bytes are returned once and in order, whatever the order of segments."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaproto.pipeline.capture.stream import (
    CUT_SHORT,
    LOST,
    PATIENCE_PACKETS,
    WINDOW_BYTES,
    Data,
    Hole,
    Piece,
    Stamp,
    Stream,
)

NOW = Stamp(1, 1)


def text(pieces: list[Piece]) -> bytes:
    return b"".join(piece.data for piece in pieces if isinstance(piece, Data))


@settings(max_examples=200, deadline=None)
@given(st.binary(min_size=1, max_size=300), st.integers(0, 2**32 - 1), st.randoms(use_true_random=False))
def test_tcp_stream_returns_each_byte_once_if_segments_overlap_or_are_reordered(
    data: bytes, first: int, random: Random
) -> None:
    stream = Stream()
    stream.begin(first)
    cuts = sorted({0, len(data), *(random.randrange(len(data) + 1) for _ in range(6))})
    parts = [(a, data[a : b + random.randrange(5)]) for a, b in pairwise(cuts)]
    parts += [(max(0, a - 2), data[max(0, a - 2) : b]) for a, b in pairwise(cuts) if random.random() < 0.3]
    random.shuffle(parts)
    out = [piece for at, part in parts for piece in stream.take((first + at) & 0xFFFFFFFF, part, 0, NOW)]
    assert text(out) == data and not any(isinstance(piece, Hole) for piece in out)


def test_8_tcp_bytes_acknowledged_but_not_captured_become_a_gap_of_8_bytes() -> None:
    stream = Stream()
    stream.begin(100)
    out = [*stream.take(100, b"ab", 0, NOW), *stream.take(110, b"yz", 0, NOW)]
    assert text(out) == b"ab"
    for number in range(PATIENCE_PACKETS + 2):
        out += stream.acknowledged(112, Stamp(number, 5))
    assert out[1:] == [Hole(8, LOST, Stamp(PATIENCE_PACKETS, 5)), Data(b"yz", Stamp(PATIENCE_PACKETS, 1))]


def test_gap_in_a_tcp_stream_without_acks_is_reported_after_one_window_of_data() -> None:
    stream = Stream()
    stream.begin(0)
    out: list[Piece] = []
    size = 1 << 16
    for i in range(1, WINDOW_BYTES // size + 3):
        out += stream.take(i * size, bytes(size), 0, NOW)
    assert out[0] == Hole(size, LOST, NOW) and len(text(out)) > WINDOW_BYTES


def test_bytes_missing_from_a_truncated_tcp_segment_become_a_gap_in_the_stream() -> None:
    stream = Stream()
    stream.begin(0)
    stream.end(12)
    out = [*stream.take(0, b"abc", 5, NOW)]
    assert not stream.ended
    out += stream.take(8, b"defg", 0, NOW)
    assert out == [Data(b"abc", NOW), Hole(5, CUT_SHORT, NOW), Data(b"defg", NOW)] and stream.ended


def test_tcp_sequence_jump_of_3_billion_bytes_gives_a_gap_of_unknown_length() -> None:
    stream = Stream()
    stream.begin(0)
    out = [*stream.take(0, b"ab", 0, NOW), *stream.take(3_000_000_000, b"cd", 0, NOW)]
    assert out == [Data(b"ab", NOW), Hole(-1, LOST, NOW), Data(b"cd", NOW)]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 2**32 - 1), st.binary(max_size=20), st.integers(0, 50), st.booleans()), max_size=40
    )
)
def test_random_tcp_segments_never_raise_an_exception(segments: list[tuple[int, bytes, int, bool]]) -> None:
    stream = Stream()
    for sequence, data, missing, acknowledges in segments:
        for piece in stream.acknowledged(sequence, NOW) if acknowledges else stream.take(sequence, data, missing, NOW):
            assert isinstance(piece, Data | Hole) and (not isinstance(piece, Hole) or piece.length)
    list(stream.flush(NOW))
