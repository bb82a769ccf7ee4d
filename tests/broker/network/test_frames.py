"""Splitting a byte stream into frames: any split gives equal frames, and memory grows only with received bytes (W-1)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaproto.broker.network.frames import (
    FIRST_BUFFER_BYTES,
    KEPT_BUFFER_BYTES,
    LENGTH_BYTES,
    SPARE_BYTES,
    SURPLUS_BYTES,
    BufferPool,
    FrameError,
    FrameReader,
)

MAX_FRAME_BYTES = 100 << 20


def framed(*payloads: bytes) -> bytes:
    return b"".join(len(payload).to_bytes(LENGTH_BYTES, "big") + payload for payload in payloads)


def length(value: int) -> bytes:
    return value.to_bytes(LENGTH_BYTES, "big", signed=True)


class Reader(FrameReader):
    """A frame reader fed by the test, which overwrites the buffer of each frame after the frame was returned."""

    def __init__(self, pool: BufferPool, max_frame_bytes: int) -> None:
        super().__init__(pool, max_frame_bytes)
        self.pool = pool

    def give(self, data: bytes) -> list[bytes]:
        frames: list[bytes] = []
        rest = memoryview(data)
        while rest:
            buffer = self.get_buffer()
            assert len(buffer) > 0
            count = min(len(buffer), len(rest))
            buffer[:count] = rest[:count]
            rest = rest[count:]
            self.received(count)
            while (frame := self.next_frame()) is not None:
                frames.append(bytes(frame))
                frame[:] = b"\xa5" * len(frame)
            self.keep_rest()
            self.pool.shared[:] = b"\x5a" * len(self.pool.shared)
        return frames


def reader(pool: BufferPool | None = None, limit: int = MAX_FRAME_BYTES) -> Reader:
    return Reader(pool or BufferPool(4096), limit)


def bound(arrived_bytes: int) -> int:
    """Return the most buffer bytes that a connection may own after receiving so many bytes of a frame."""
    return 2 * arrived_bytes + FIRST_BUFFER_BYTES + SURPLUS_BYTES + 64


@pytest.mark.rule("W-1")
@settings(max_examples=200, deadline=None)
@given(
    payloads=st.lists(st.binary(max_size=3000) | st.integers(0, 40_000).map(bytes), max_size=12),
    cuts=st.lists(st.integers(1, 20_000), min_size=1, max_size=30),
)
def test_frame_reader_returns_the_same_frames_however_the_stream_is_split(
    payloads: list[bytes], cuts: list[int]
) -> None:
    stream = framed(*payloads)
    frame_reader = reader()
    frames: list[bytes] = []
    position = turn = 0
    while position < len(stream):
        step = cuts[turn % len(cuts)]
        turn += 1
        frames += frame_reader.give(stream[position : position + step])
        position += step
        assert frame_reader.owned_bytes <= max(bound(frame_reader.waiting_bytes), KEPT_BUFFER_BYTES + SURPLUS_BYTES)
    assert frames == payloads
    assert frame_reader.waiting_bytes == frame_reader.owned_bytes == 0


@pytest.mark.rule("W-8")
@settings(max_examples=60, deadline=None)
@given(
    streams=st.lists(st.lists(st.binary(max_size=200), min_size=1, max_size=6), min_size=2, max_size=5),
    order=st.lists(st.integers(0, 4), min_size=10, max_size=60),
    step=st.integers(1, 90),
)
def test_frame_readers_that_share_a_buffer_pool_do_not_mix_their_bytes(
    streams: list[list[bytes]], order: list[int], step: int
) -> None:
    pool = BufferPool(64)
    readers = [reader(pool) for _ in streams]
    remaining = [framed(*payloads) for payloads in streams]
    received: list[list[bytes]] = [[] for _ in streams]
    turns = [*order, *(i for i in range(len(streams)) for _ in range(2000 // step))]
    for turn in turns:
        i = turn % len(streams)
        received[i] += readers[i].give(remaining[i][:step])
        remaining[i] = remaining[i][step:]
    assert received == streams


def test_frame_reader_returns_empty_frames_before_and_after_a_frame_with_bytes() -> None:
    assert reader().give(framed(b"", b"x", b"")) == [b"", b"x", b""]


@pytest.mark.rule("W-1")
@pytest.mark.parametrize("announced", [-1, -(2**31), 1001, 2**31 - 1])
def test_invalid_frame_length_raises_as_soon_as_the_length_is_received(announced: int) -> None:
    frame_reader = reader(limit=1000)
    assert frame_reader.give(length(announced)[:3]) == []
    assert not frame_reader.has_frame()
    with pytest.raises(FrameError, match=f"a frame of {announced} bytes was announced; 0 to 1000 are allowed"):
        frame_reader.give(length(announced)[3:])


@pytest.mark.rule("W-1")
def test_frame_of_exactly_the_maximum_length_is_accepted() -> None:
    assert reader(limit=1000).give(framed(bytes(1000))) == [bytes(1000)]


@pytest.mark.rule("W-9")
def test_frame_reader_reports_a_complete_frame_without_consuming_the_frame() -> None:
    frame_reader = reader()
    data = framed(b"first", b"second")
    buffer = frame_reader.get_buffer()
    buffer[: len(data)] = data
    frame_reader.received(len(data) - 1)
    first = frame_reader.next_frame()
    assert first is not None and bytes(first) == b"first"
    assert not frame_reader.has_frame()
    frame_reader.keep_rest()
    frame_reader.get_buffer()[:1] = data[-1:]
    frame_reader.received(1)
    assert frame_reader.has_frame()
    second = frame_reader.next_frame()
    assert second is not None and bytes(second) == b"second"


@pytest.mark.rule("W-1")
def test_frame_reader_raises_when_a_frame_length_exceeds_the_limit() -> None:
    frame_reader = reader(limit=10)
    buffer = frame_reader.get_buffer()
    buffer[:4] = length(11)
    frame_reader.received(4)
    assert frame_reader.has_frame()
    with pytest.raises(FrameError):
        frame_reader.next_frame()


@pytest.mark.rule("W-1")
@pytest.mark.parametrize("announced", [1 << 30, 100 << 20, 5_000_000])
def test_frame_buffer_grows_with_received_bytes_not_with_the_announced_length(announced: int) -> None:
    frame_reader = reader(BufferPool(), limit=1 << 30)
    frame_reader.give(length(announced))
    received_bytes = LENGTH_BYTES
    while received_bytes < min(announced, 4_000_000):
        assert frame_reader.owned_bytes <= bound(received_bytes)
        frame_reader.give(bytes(100_000))
        received_bytes += 100_000
    assert frame_reader.waiting_bytes == received_bytes
    frame_reader.release()
    assert frame_reader.owned_bytes == 0


@pytest.mark.rule("W-1")
def test_frame_buffer_grows_to_the_frame_size_when_half_of_the_frame_has_arrived() -> None:
    frame_reader = reader(BufferPool(1024))
    frame_reader.give(framed(bytes(3000))[:1500])
    assert 3004 <= frame_reader.owned_bytes <= 3004 + 64


def test_frame_buffer_is_released_after_an_8_mb_frame_and_1_byte_of_the_next_frame() -> None:
    """After a frame of 8 MB and the first byte of the next frame, 8 MB are not kept for that byte."""
    frame_reader = reader(BufferPool())
    data = framed(bytes(8_000_000)) + b"\x00"
    assert len(frame_reader.give(data)) == 1
    assert frame_reader.waiting_bytes == 1
    assert frame_reader.owned_bytes <= bound(1)
    assert frame_reader.give(framed(b"next")[1:]) == [b"next"]


def test_frame_reader_reuses_one_buffer_for_a_stream_of_frames() -> None:
    """The start of the next frame stays in the current buffer, which does not grow again for each frame."""
    frame_reader = reader(BufferPool())
    stream = framed(*[bytes(500_000)] * 5)
    sizes = set()
    frames = 0
    for position in range(0, len(stream), 70_001):
        frames += len(frame_reader.give(stream[position : position + 70_001]))
        sizes.add(frame_reader.owned_bytes)
    assert frames == 5
    assert max(sizes) <= 2 * 500_000 + FIRST_BUFFER_BYTES + SURPLUS_BYTES


def test_released_frame_reader_frees_the_memory_of_a_partial_frame() -> None:
    frame_reader = reader()
    frame_reader.give(framed(b"abc", b"def")[:-1])
    frame_reader.release()
    assert (frame_reader.waiting_bytes, frame_reader.owned_bytes, frame_reader.has_frame()) == (0, 0, False)
    assert frame_reader.give(framed(b"next")) == [b"next"]


# ---- the pool -------------------------------------------------------------------------------------------------------------------------


def test_buffer_pool_reuses_a_spare_buffer_of_matching_size() -> None:
    pool = BufferPool()
    buffer = pool.take(100_000)
    assert len(buffer) == 100_000
    pool.give_back(buffer)
    assert pool.spare_bytes == 100_000
    assert pool.take(90_000) is buffer
    assert pool.spare_bytes == 0


def test_buffer_pool_does_not_hand_out_a_spare_buffer_much_larger_than_requested() -> None:
    pool = BufferPool()
    buffer = pool.take(1 << 20)
    pool.give_back(buffer)
    assert len(pool.take(64)) == 64
    assert len(pool.take((1 << 20) - SURPLUS_BYTES - 1)) == (1 << 20) - SURPLUS_BYTES - 1
    assert pool.take((1 << 20) - SURPLUS_BYTES) is buffer


def test_buffer_pool_limits_its_spare_bytes_and_drops_the_oldest_buffer_first() -> None:
    pool = BufferPool()
    buffers = [bytearray(KEPT_BUFFER_BYTES - i) for i in range(4)]
    for buffer in buffers:
        pool.give_back(buffer)
        assert pool.spare_bytes <= SPARE_BYTES
    assert pool.take(KEPT_BUFFER_BYTES - 3) is buffers[2]
    pool.give_back(bytearray(KEPT_BUFFER_BYTES + 1))
    assert pool.spare_bytes == len(buffers[3])
