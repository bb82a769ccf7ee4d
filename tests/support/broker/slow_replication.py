"""A slow reference model of one follower that copies one partition under replication quotas.

A direct transcription of R-3 to R-7 and Q-2, Q-3: no timers, no fetch sessions, no code shared with the broker. It computes when each fetch
is answered and with how many bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

EMPTY_BYTES = 4 + 12
"""Size of a Fetch v17 response without a topic, plus the 4 bytes that Kafka adds to it."""


@dataclass
class SlowSimpleRate:
    """Kafka's `SimpleRate` over `SampledStat`, with one [value, start, last event] per sample."""

    samples: int = 11
    window_ms: int = 1000
    slots: list[list[float]] = field(default_factory=list)
    current: int = 0

    def record(self, value: float, now_ms: int) -> None:
        if not self.slots:
            self.slots.append([0, now_ms, now_ms])
        if now_ms - self.slots[self.current][1] >= self.window_ms:
            self.current = (self.current + 1) % (self.samples + 1)
            if self.current == len(self.slots):
                self.slots.append([0, now_ms, now_ms])
            else:
                self.slots[self.current] = [0, now_ms, now_ms]
        self.slots[self.current][0] += value
        self.slots[self.current][2] = now_ms

    def measure(self, now_ms: int) -> float:
        if not self.slots:
            self.slots.append([0, now_ms, now_ms])
        for slot in self.slots:
            if now_ms - slot[2] >= self.samples * self.window_ms:
                slot[:] = [0, now_ms, now_ms]
        oldest = min(start for _, start, _ in self.slots)
        return sum(value for value, _, _ in self.slots) / (max(now_ms - oldest, self.window_ms) / 1000)


@dataclass
class SlowFollower:
    """A follower whose leader has batches of the sizes `batches` (bytes).

    Rates are in bytes per second, None for no limit; times are in ms since the start.
    """

    batches: Sequence[int]
    leader_rate: int | None
    follower_rate: int | None
    partition_max_bytes: int = 1 << 20
    wait_ms: int = 500
    backoff_ms: int = 1000
    samples: int = 11
    window_ms: int = 1000

    def run(self, limit_ms: int = 10**9) -> list[tuple[int, int]]:
        """Return (time, bytes) of every response with records, up to the last."""
        leader, follower = (SlowSimpleRate(self.samples, self.window_ms) for _ in range(2))
        now, place = 0, 0
        brought: list[tuple[int, int]] = []
        lag: int | None = None
        has_request = has_response = False
        while now < limit_ms:
            # the follower builds the request
            too_much = self.follower_rate is not None and follower.measure(now) > self.follower_rate
            if lag != 0 and too_much:
                if has_request:
                    leader.record(EMPTY_BYTES, now)
                has_request = has_response = False
                now += self.backoff_ms
                continue
            has_request = True
            # the request reaches the leader
            if place == len(self.batches):
                return brought
            if self._gives_nothing(leader, now):
                now += self.wait_ms
            size = 0
            if not self._gives_nothing(leader, now):
                while place < len(self.batches) and (
                    not size or size + self.batches[place] <= self.partition_max_bytes
                ):
                    size += self.batches[place]
                    place += 1
            # the leader responds
            if size or not has_response:
                leader.record(EMPTY_BYTES + 18 + 36 + varint_bytes(size + 1) + size, now)
                follower.record(size, now)
            else:
                leader.record(EMPTY_BYTES, now)
            has_response = True
            if size:
                brought.append((now, size))
            if size or lag is None:
                lag = len(self.batches) - place
        raise AssertionError(f"not done after {limit_ms} ms")

    def _gives_nothing(self, leader: SlowSimpleRate, now: int) -> bool:
        return self.leader_rate is not None and leader.measure(now) > self.leader_rate


def varint_bytes(value: int) -> int:
    count = 1
    while value >= 128:
        value >>= 7
        count += 1
    return count
