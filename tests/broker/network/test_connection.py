"""A connection without a socket: reading, writing and the mute states (T-6, T-7, W-9 to W-11)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest

from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.network.connection import FRAMES_PER_TURN, TURN_MS, Connection
from kafkaproto.broker.network.frames import BufferPool
from kafkaproto.broker.network.mute import MuteState
from kafkaproto.broker.requests import pipeline
from kafkaproto.broker.requests.delayed import Delayed
from kafkaproto.broker.runtime.clock import ManualClock

IDLE_MS = 60_000
WAITING_STATES = [state for state in MuteState if state not in (MuteState.NOT_MUTED, MuteState.MUTED)]


class FakeSocket:
    """The socket side of a connection. `full`: the kernel accepts no bytes, so that a write is not finished at once."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.full = False
        self.reading = True
        self.closed = 0
        self.later = 0

    def write(self, buffers: Sequence[Any]) -> bool:
        self.written.append(b"".join(bytes(b) for b in buffers))
        return not self.full

    def pause_reading(self) -> None:
        assert self.reading, "paused twice"
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading, "resumed twice"
        self.reading = True

    def close(self) -> None:
        self.closed += 1

    def call_soon(self) -> None:
        self.later += 1


class Bench:
    """A connection whose requests are handled by the test: each frame is recorded, and answered by a call of the test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, idle_ms: int = IDLE_MS) -> None:
        self.clock = ManualClock()
        self.cluster = Cluster(config={"connections.max.idle.ms": str(idle_ms)}, clock=self.clock)
        self.socket = FakeSocket()
        self.connection = Connection(
            self.cluster.nodes[0], "PLAINTEXT", "127.0.0.1", self.socket, BufferPool(), self.now_ms
        )
        self.frames: list[bytes] = []
        self.at_once: int | None = None
        monkeypatch.setattr(pipeline, "begin", self._begin)

    @property
    def now_ms(self) -> int:
        return self.clock.now_ms()

    @property
    def state(self) -> MuteState:
        return self.connection.state

    def _begin(self, node: Any, asker: Connection, frame: memoryview, now_ms: int) -> None:
        self.frames.append(bytes(frame))
        if self.at_once is not None:
            asker.respond((bytes(frame),), self.at_once, False, now_ms)

    def give(self, *payloads: bytes) -> None:
        self.give_bytes(b"".join(len(p).to_bytes(4, "big") + p for p in payloads))

    def give_bytes(self, data: bytes) -> None:
        """Deliver received bytes. Bytes that arrive while the connection does not read stay in the kernel: a test must not deliver them."""
        assert self.socket.reading
        buffer = self.connection.get_buffer()
        buffer[: len(data)] = data
        self.connection.received(len(data), self.now_ms)

    def answer(self, throttle_ms: int = 0, *, close: bool = False, data: bytes | None = b"answer") -> None:
        self.connection.respond(None if data is None else (data,), throttle_ms, close, self.now_ms)

    def out(self) -> None:
        """Report that the kernel has accepted all written bytes."""
        self.connection.written(self.now_ms)

    def advance(self, delta_ms: int) -> None:
        self.clock.advance(delta_ms)
        self.cluster.run_due(self.now_ms)

    def timers(self) -> int:
        return len(self.cluster.timers)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(monkeypatch)


# ---- one request at a time -------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("W-9")
def test_connection_handles_the_next_frame_only_after_the_response_is_written(bench: Bench) -> None:
    bench.socket.full = True
    bench.give(b"one", b"two")
    assert bench.frames == [b"one"]
    bench.answer()
    assert (bench.frames, bench.state) == ([b"one"], MuteState.MUTED_AND_RESPONSE_PENDING)
    bench.out()
    assert bench.frames == [b"one", b"two"]


@pytest.mark.rule("W-9")
def test_connection_buffers_at_most_one_complete_frame_behind_a_pending_request(bench: Bench) -> None:
    bench.give(b"one")
    assert bench.socket.reading
    bench.give_bytes(b"\x00\x00\x00\x03tw")
    assert bench.socket.reading
    bench.give_bytes(b"o")
    assert not bench.socket.reading
    bench.answer()
    assert bench.frames == [b"one", b"two"]
    assert bench.socket.reading


@pytest.mark.rule("P-14")
def test_connection_handles_the_next_request_after_a_request_without_response(bench: Bench) -> None:
    bench.give(b"one", b"two")
    bench.answer(data=None)
    assert bench.frames == [b"one", b"two"]
    assert bench.socket.written == []


@pytest.mark.rule("T-12")
def test_connection_closes_after_writing_a_response_marked_as_last(bench: Bench) -> None:
    bench.socket.full = True
    bench.give(b"one", b"two")
    bench.answer(close=True)
    assert bench.socket.closed == 0
    bench.out()
    assert (bench.socket.closed, bench.frames) == (1, [b"one"])


@pytest.mark.rule("W-8")
def test_connection_handles_at_most_64_frames_per_event_loop_iteration(bench: Bench) -> None:
    bench.at_once = 0
    bench.give(*[b"%d" % i for i in range(2 * FRAMES_PER_TURN + 1)])
    assert len(bench.frames) == FRAMES_PER_TURN
    assert (bench.socket.later, bench.socket.reading) == (1, False)
    bench.connection.proceed(bench.now_ms)
    assert len(bench.frames) == 2 * FRAMES_PER_TURN
    bench.connection.proceed(bench.now_ms)
    assert bench.frames == [b"%d" % i for i in range(2 * FRAMES_PER_TURN + 1)]
    assert (bench.socket.later, bench.socket.reading) == (2, True)


@pytest.mark.rule("W-8")
def test_event_loop_iteration_ends_after_3_of_10_frames_if_handling_them_is_slow(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = iter(range(1000))
    monkeypatch.setattr(bench.clock, "precise_ms", lambda: next(ticks) * (TURN_MS / 2))
    bench.at_once = 0
    bench.give(*[b"%d" % i for i in range(10)])
    assert len(bench.frames) == 3
    assert bench.socket.later == 1


@pytest.mark.rule("W-8")
def test_frames_received_between_event_loop_iterations_keep_their_order(bench: Bench) -> None:
    bench.at_once = 0
    bench.give(*[b"%d" % i for i in range(FRAMES_PER_TURN + 2)])
    bench.connection.proceed(bench.now_ms)
    bench.connection.proceed(bench.now_ms)
    bench.give(b"last")
    assert bench.frames[-3:] == [b"64", b"65", b"last"]


# ---- mute ------------------------------------------------------------------------------------------------------------------------------


def enter(bench: Bench, state: MuteState) -> None:
    """Send one request and bring its connection into `state`; a throttle lasts 1000 ms."""
    bench.socket.full = True
    bench.give(b"one")
    if state is not MuteState.MUTED_AND_RESPONSE_PENDING:
        bench.answer(1000)
    if state is MuteState.MUTED_AND_THROTTLED:
        bench.out()
    assert bench.state is state


@pytest.mark.rule("T-7")
@pytest.mark.parametrize("state", WAITING_STATES)
def test_broker_receives_bytes_while_a_response_is_pending_but_not_during_a_throttle(
    bench: Bench, state: MuteState
) -> None:
    enter(bench, state)
    assert bench.socket.reading == (state is MuteState.MUTED_AND_RESPONSE_PENDING)


@pytest.mark.rule("T-6", "T-8")
def test_broker_reads_from_a_throttled_connection_again_when_the_throttle_ends(bench: Bench) -> None:
    enter(bench, MuteState.MUTED_AND_THROTTLED)
    bench.advance(999)
    assert bench.state is MuteState.MUTED_AND_THROTTLED
    bench.advance(1)
    assert bench.state is MuteState.NOT_MUTED
    assert bench.socket.reading


@pytest.mark.rule("T-6")
def test_connection_stays_muted_when_a_throttle_ends_before_the_response_is_written(bench: Bench) -> None:
    enter(bench, MuteState.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING)
    bench.advance(1000)
    assert bench.state is MuteState.MUTED_AND_RESPONSE_PENDING
    assert bench.frames == [b"one"]
    bench.out()
    assert bench.state is MuteState.NOT_MUTED


@pytest.mark.rule("T-7")
def test_frame_is_handled_only_after_the_throttle_of_the_previous_frame_has_ended(bench: Bench) -> None:
    bench.at_once = 100
    bench.give(b"one", b"two", b"three")
    for count in (1, 2, 3):
        assert len(bench.frames) == count
        assert bench.state is MuteState.MUTED_AND_THROTTLED
        bench.advance(100)
    assert bench.state is MuteState.NOT_MUTED
    assert bench.socket.reading


@pytest.mark.rule("T-3")
def test_throttle_of_a_request_without_response_mutes_the_connection(bench: Bench) -> None:
    bench.give(b"one")
    bench.answer(500, data=None)
    assert bench.state is MuteState.MUTED_AND_THROTTLED
    bench.advance(500)
    assert bench.state is MuteState.NOT_MUTED


# ---- ends --------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("T-10")
@pytest.mark.parametrize("state", [MuteState.NOT_MUTED, *WAITING_STATES])
@pytest.mark.parametrize("way", ["close", "lost", "refuse", "idle"])
def test_closing_a_connection_in_any_state_leaves_no_timers(bench: Bench, state: MuteState, way: str) -> None:
    delayed = Delayed()
    if state is not MuteState.NOT_MUTED:
        enter(bench, state)
        if state is MuteState.MUTED_AND_RESPONSE_PENDING:
            bench.connection.parked = delayed
    if way == "close":
        bench.connection.close()
    elif way == "lost":
        bench.connection.socket_closed()
    elif way == "refuse":
        bench.connection.refuse("because")
    elif state in (MuteState.NOT_MUTED, MuteState.MUTED_AND_RESPONSE_PENDING):
        bench.advance(IDLE_MS)
    else:
        bench.advance(1000)
        bench.advance(IDLE_MS - 1000)
    assert bench.connection.closed
    assert bench.socket.closed == (0 if way == "lost" else 1)
    assert bench.timers() == 0
    assert bench.connection.node.connections == {}
    assert delayed.done == (state is MuteState.MUTED_AND_RESPONSE_PENDING)
    bench.connection.close()
    bench.connection.socket_closed()
    bench.connection.written(bench.now_ms)
    bench.answer(10)
    bench.connection.proceed(bench.now_ms)
    assert bench.socket.closed == (0 if way == "lost" else 1)
    assert bench.timers() == 0


@pytest.mark.rule("W-10")
def test_half_closed_client_gets_answers_to_all_complete_requests_before_the_close(bench: Bench) -> None:
    bench.give_bytes(b"\x00\x00\x00\x03one\x00\x00\x00\x03two\x00\x00\x00\x09inc")
    bench.connection.ended(bench.now_ms)
    assert bench.socket.closed == 0
    bench.answer()
    assert (bench.frames, bench.socket.closed) == ([b"one", b"two"], 0)
    bench.answer(100)
    assert bench.socket.closed == 0
    bench.advance(100)
    assert bench.socket.closed == 1


@pytest.mark.rule("W-10")
def test_connection_closes_at_once_if_the_client_disconnects_before_sending_anything(bench: Bench) -> None:
    bench.connection.ended(bench.now_ms)
    assert bench.socket.closed == 1


@pytest.mark.rule("W-10")
def test_half_closed_connection_handles_more_than_64_received_frames_before_closing(bench: Bench) -> None:
    bench.at_once = 0
    bench.give(*[b"x"] * (FRAMES_PER_TURN + 1))
    bench.connection.ended(bench.now_ms)
    assert (len(bench.frames), bench.socket.closed) == (FRAMES_PER_TURN + 1, 1)
    bench.connection.proceed(bench.now_ms)
    assert bench.socket.closed == 1


@pytest.mark.rule("W-11")
def test_any_received_byte_and_any_response_reset_the_idle_timeout(bench: Bench) -> None:
    bench.give_bytes(b"\x00")
    bench.advance(IDLE_MS - 1)
    bench.give_bytes(b"\x00\x00\x01x")
    bench.advance(IDLE_MS - 1)
    bench.answer()
    bench.advance(IDLE_MS - 1)
    assert bench.socket.closed == 0
    bench.advance(1)
    assert bench.socket.closed == 1


@pytest.mark.rule("W-11")
def test_connections_without_an_idle_limit_have_no_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, -1)
    assert bench.timers() == 0
    bench.advance(10**9)
    assert bench.socket.closed == 0


@pytest.mark.rule("W-8")
def test_internal_error_outside_a_handler_closes_the_connection_and_is_logged(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(pipeline, "begin", failing)
    bench.give(b"one", b"two")
    assert (bench.connection.closed, bench.socket.closed) == (True, 1)
    [record] = [r for r in caplog.records if r.levelno == logging.ERROR]
    assert record.exc_info is not None and "a bug" in str(record.exc_info[1])


@pytest.mark.rule("W-1")
def test_requests_received_before_an_invalid_frame_length_are_answered(bench: Bench) -> None:
    bench.at_once = 0
    bench.give_bytes(b"\x00\x00\x00\x03one\xff\xff\xff\xff")
    assert bench.socket.written == [b"one"]
    assert bench.socket.closed == 1


@pytest.mark.rule("W-1")
def test_connection_with_an_invalid_frame_closes_after_the_pending_response_is_sent(bench: Bench) -> None:
    bench.give_bytes(b"\x00\x00\x00\x03one\x7f\xff\xff\xff")
    assert (bench.socket.reading, bench.socket.closed) == (False, 0)
    bench.answer()
    assert bench.socket.written == [b"answer"]
    assert bench.socket.closed == 1
