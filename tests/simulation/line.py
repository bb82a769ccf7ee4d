"""One client's connection to one broker of a simulation: what is under way on it, how slowly it is read, when the broker sees what is sent.

A slow disk in virtual time. Handlers are synchronous, so nothing can be seen between the beginning and the end of an append: one that
takes 200 ms is one that is done 200 ms later. So what clients send to a broker with a slow disk reaches it that much later, in order,
and its followers fetch that much later (`faults.slow_disk`), as Kafka's fetcher appends an answer before it sends the next fetch. What
this leaves out: in Kafka a slow append holds up one of several request threads, so that requests of other connections wait only when all
of them are held up; here they never wait.

Must never know what the messages mean to who sends them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from kafkaproto.broker.log.files import FileRange
from kafkaproto.broker.testing.memory import LISTENER, Answered, MemoryClient
from kafkaproto.frame import LENGTH_BYTES
from tests.simulation.quotas import Asked
from tests.simulation.world import World

ACKS_NONE = 0

Heard = Callable[[Any], None]


class Line(MemoryClient):
    """One connection whose owner hears its answers, and which can be slow to read them.

    Checks X-5: in order, and not before a throttle has passed, told or not; and X-6: that it is told. A slow reader's bytes are taken
    twice, when they are written and when they are read: nothing may have been written over them.
    """

    def __init__(self, world: World, broker_id: int, name: str, client_id: str | None) -> None:
        self.world = world
        self.broker_id = broker_id
        self.name = f"{name}@{broker_id}"
        self.slow = False
        self.muted_until_ms = 0
        """Until when the broker reads nothing, as quotas must have it."""
        self.sent: dict[int, tuple[Any, int, int]] = {}
        """By correlation id: what the broker has not begun with, its version, and the size of header and body."""
        self.asked: Asked | None = None
        """What the broker is at."""
        self._owed: tuple[int, bool] = (0, True)
        self._told_until_ms = 0
        self.expected: deque[tuple[int, Heard]] = deque()
        self._unread_answer: tuple[Sequence[object], bytes] | None = None
        self._arrived_ms = 0
        self.read_ms = 0
        """When a slow reader last read an answer: what it had sent behind is handled then."""
        world.lines.append(self)
        super().__init__(world.cluster, broker_id, client_id, "127.0.0.1", LISTENER)
        world.charges.lines[self.connection.connection_id] = self

    @property
    def is_open(self) -> bool:
        return self.closed_ms is None

    @property
    def is_idle(self) -> bool:
        """Nothing is under way, so that what is sent now is handled now."""
        idle = not self.expected and self._unread_answer is None
        return idle and self.handled_ms <= self.world.now_ms

    @property
    def handled_ms(self) -> int:
        """When what is sent now is handled, as far as one can know: not before a throttle has passed, and a slow disk was waited for."""
        arrives_ms = max(self._arrived_ms, self.world.now_ms + self.world.disk_delay_ms.get(self.broker_id, 0))
        return max(self.muted_until_ms, arrives_ms)

    def cut(self) -> None:
        """The process at the other end is gone."""
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
        """The client goes, whatever it waits for."""
        self.cut()
        self.connection.lost()

    def request(self, request: Any, version: int, heard: Heard) -> None:
        """Send; `heard` is called with the answer's message at the instant at which it leaves the broker."""
        self.world.say(self.name, request)
        if getattr(request, "acks", None) != ACKS_NONE:
            self.expected.append((self.next_id, heard))
        self.sent[self.next_id] = request, version, 0
        self.send(request, version)

    def throttled(self, throttle_ms: int, is_told: bool) -> None:
        """What is about to be answered throttles this connection, as quotas must have it, from now on."""
        self._owed = throttle_ms, is_told
        self.muted_until_ms = self.world.now_ms + throttle_ms

    def write(self, buffers: Sequence[object]) -> bool:
        out = super().write(buffers)
        if not self.slow:
            return out
        self._unread_answer = buffers, _joined(buffers)
        return False

    def read_on(self) -> None:
        """A slow reader has read what was sent."""
        if self._unread_answer is None:
            return
        (buffers, sent), self._unread_answer = self._unread_answer, None
        assert _joined(buffers) == sent, "bytes were written over while they were being sent"
        self.read_ms = self.world.now_ms
        self.connection.written(self.read_ms)
        self.world.cluster.run()

    def took(self, data: bytes) -> None:
        super().took(data)
        answer = self.answers.pop()
        self.world.say(f"{self.name} answered", answer.message)
        self._check_order(answer)
        _, heard = self.expected.popleft()
        heard(answer.message)

    def _check_order(self, answer: Answered) -> None:
        assert self.expected, "an answer that nobody asked for"
        assert answer.correlation_id == self.expected[0][0], "X-5: answers out of order"
        assert answer.at_ms >= self._told_until_ms, f"X-5: answered while throttled until {self._told_until_ms}"
        told_ms = getattr(answer.message, "throttle_time_ms", 0)
        throttle_ms, is_told = self._owed
        assert told_ms == (throttle_ms if is_told else 0), f"X-6: {self.name}: told {told_ms}, not {throttle_ms}"
        self._told_until_ms = answer.at_ms + told_ms


def _joined(buffers: Sequence[object]) -> bytes:
    return b"".join(b.read() if isinstance(b, FileRange) else bytes(b) for b in buffers)  # type: ignore[call-overload]
