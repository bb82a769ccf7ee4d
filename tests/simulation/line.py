"""A client's connection to one broker: requests in flight, slow reading, and when the broker receives what is sent.

It also simulates a slow disk in virtual time. Handlers are synchronous, so nothing happens between the start and the end of an append: an
append of 200 ms is one that is done 200 ms later. Requests to a broker with a slow disk therefore reach it that much later, in order, and
its followers fetch that much later (`faults.slow_disk`), as Kafka's fetcher appends a response before it sends the next fetch. In Kafka a
slow append blocks one of several request threads, and other connections wait only when all threads are blocked; here they never wait.
Independent of the meaning of the messages.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from kafkaproto.broker.log.files import FileRange
from kafkaproto.broker.testing.memory import LISTENER, Answered, MemoryClient
from kafkaproto.frame import LENGTH_BYTES
from tests.simulation.quotas import SentRequest
from tests.simulation.world import World

ACKS_NONE = 0

OnResponse = Callable[[Any], None]


class Line(MemoryClient):
    """A connection that passes responses to its client, and can be slow to read them.

    Checks that responses are in order and no earlier than the throttle time allows, reported or not (X-5), and that it is reported (X-6).
    The bytes for a slow reader are compared when they are written and when they are read: nothing may overwrite them.
    """

    def __init__(self, world: World, broker_id: int, name: str, client_id: str | None) -> None:
        self.world = world
        self.broker_id = broker_id
        self.name = f"{name}@{broker_id}"
        self.slow = False
        self.muted_until_ms = 0
        """Until when quotas mute the connection."""
        self.sent: dict[int, tuple[Any, int, int]] = {}
        """Maps the correlation id of a request that the broker has not started to (request, version, size of header and body)."""
        self.request_in_flight: SentRequest | None = None
        """The request that the broker is handling."""
        self._expected_throttle: tuple[int, bool] = (0, True)
        self._reported_until_ms = 0
        self.expected: deque[tuple[int, OnResponse]] = deque()
        self._unread_answer: tuple[Sequence[object], bytes] | None = None
        self._arrived_ms = 0
        self.read_ms = 0
        """When a slow reader last read a response: the broker handles later requests then."""
        world.lines.append(self)
        super().__init__(world.cluster, broker_id, client_id, "127.0.0.1", LISTENER)
        world.charges.lines[self.connection.connection_id] = self

    @property
    def is_open(self) -> bool:
        return self.closed_ms is None

    @property
    def is_idle(self) -> bool:
        """Return whether nothing is in flight, so that a request is handled at once."""
        idle = not self.expected and self._unread_answer is None
        return idle and self.handled_ms <= self.world.now_ms

    @property
    def handled_ms(self) -> int:
        """Return the earliest time at which a request sent now is handled, after the throttle time and the delay of a slow disk."""
        arrives_ms = max(self._arrived_ms, self.world.now_ms + self.world.disk_delay_ms.get(self.broker_id, 0))
        return max(self.muted_until_ms, arrives_ms)

    def cut(self) -> None:
        """Close the connection after the other end's process has died."""
        self.closed_ms = self.world.now_ms
        self._unread_answer = None

    def send_bytes(self, data: bytes, *, patch_length: bool = False) -> None:
        now_ms = self.world.now_ms
        request, version, _ = self.sent[self.next_id - 1]
        self.sent[self.next_id - 1] = request, version, len(data) - LENGTH_BYTES
        arrives_ms = max(self._arrived_ms, now_ms + self.world.disk_delay_ms.get(self.broker_id, 0))
        if arrives_ms <= now_ms:
            super().send_bytes(data, patch_length=patch_length)
            return
        self._arrived_ms = arrives_ms
        self.world.cluster.state.timers.at(arrives_ms, lambda _: self._arrive(data))

    def _arrive(self, data: bytes) -> None:
        if self.is_open:
            with self.world.cluster.delivering():
                super().send_bytes(data)

    def hang_up(self) -> None:
        """Disconnect the client, even while it waits for a response."""
        self.cut()
        self.connection.socket_closed()

    def request(self, request: Any, version: int, on_response: OnResponse) -> None:
        """Send a request; `on_response` is called with the response message at the instant at which it leaves the broker."""
        self.world.say(self.name, request)
        if getattr(request, "acks", None) != ACKS_NONE:
            self.expected.append((self.next_id, on_response))
        self.sent[self.next_id] = request, version, 0
        self.send(request, version)

    def throttled(self, throttle_ms: int, is_reported: bool) -> None:
        """Expect the next response to throttle this connection from now on."""
        self._expected_throttle = throttle_ms, is_reported
        self.muted_until_ms = self.world.now_ms + throttle_ms

    def write(self, buffers: Sequence[object]) -> bool:
        out = super().write(buffers)
        if not self.slow:
            return out
        self._unread_answer = buffers, _joined(buffers)
        return False

    def read_on(self) -> None:
        """Let a slow reader read the responses sent to it."""
        if self._unread_answer is None:
            return
        (buffers, sent), self._unread_answer = self._unread_answer, None
        assert _joined(buffers) == sent, "bytes were overwritten while they were being sent"
        self.read_ms = self.world.now_ms
        self.connection.written(self.read_ms)
        self.world.cluster.run()

    def took(self, data: bytes) -> None:
        super().took(data)
        response = self.answers.pop()
        self.world.say(f"{self.name} answered", response.message)
        self._check_order(response)
        _, on_response = self.expected.popleft()
        on_response(response.message)

    def _check_order(self, answer: Answered) -> None:
        assert self.expected, "a response without a request"
        assert answer.correlation_id == self.expected[0][0], "X-5: answers out of order"
        assert answer.at_ms >= self._reported_until_ms, f"X-5: answered while throttled until {self._reported_until_ms}"
        reported_ms = getattr(answer.message, "throttle_time_ms", 0)
        throttle_ms, is_reported = self._expected_throttle
        assert reported_ms == (throttle_ms if is_reported else 0), (
            f"X-6: {self.name}: reported {reported_ms}, not {throttle_ms}"
        )
        self._reported_until_ms = answer.at_ms + reported_ms


def _joined(buffers: Sequence[object]) -> bytes:
    return b"".join(b.read() if isinstance(b, FileRange) else bytes(b) for b in buffers)  # type: ignore[call-overload]
