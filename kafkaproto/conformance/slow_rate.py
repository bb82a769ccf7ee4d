"""A direct implementation of Kafka's quota rate (Q-2 to Q-6), without the caches that make the broker's own implementation fast.

Tests compare a broker's throttle times with those of this module. The module imports nothing of the broker, so an error in the broker's
code does not change the results of this module.
"""

from __future__ import annotations

from copy import copy
from math import floor


class _Sample:
    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.value = 0.0
        self.start_ms = self.last_ms = now_ms


class SlowRate:
    """The measured rate of one quota over sliding windows. samples: the number of windows. window_ms: the length of each window in ms."""

    def __init__(self, samples: int = 11, window_ms: int = 1000) -> None:
        self.n, self.w = samples, window_ms
        self.slots: list[_Sample] = []
        self.current = 0

    def record(self, value: float, now_ms: int) -> None:
        """Add a value, such as the bytes of a request, to the sample (time window) that contains `now_ms` (Q-2)."""
        if not self.slots:
            self.slots.append(_Sample(now_ms))
        if now_ms - self.slots[self.current].start_ms >= self.w:
            self.current = (self.current + 1) % (self.n + 1)
            if self.current == len(self.slots):
                self.slots.append(_Sample(now_ms))
            else:
                self.slots[self.current].reset(now_ms)
        self.slots[self.current].value += value
        self.slots[self.current].last_ms = now_ms

    def measure(self, now_ms: int) -> tuple[float, int]:
        """Reset expired samples (time windows), and return the current rate (Q-3 to Q-5).

        The result is (rate per second, length in ms of the period over which the rate is computed).
        """
        if not self.slots:
            self.slots.append(_Sample(now_ms))
        for sample in self.slots:
            if now_ms - sample.last_ms >= self.n * self.w:
                sample.reset(now_ms)
        elapsed = now_ms - min(s.start_ms for s in self.slots)
        full = elapsed // self.w
        if full < self.n - 1:
            elapsed += (self.n - 1 - full) * self.w
        window_ms = max(elapsed, 1)
        total = 0.0
        for sample in self.slots:
            total += sample.value
        return total / (window_ms / 1000.0), window_ms

    def seen_at(self, now_ms: int) -> float:
        """Return the rate per second that `measure` would return at the time `now_ms`. Changes nothing."""
        clone = SlowRate(self.n, self.w)
        clone.slots = [copy(sample) for sample in self.slots]
        clone.current = self.current
        return clone.measure(now_ms)[0]

    def throttle_ms(self, now_ms: int, bound: float) -> int:
        """Return the throttle time in ms under a quota of `bound` per second; 0 if the rate does not exceed the quota (Q-5, Q-6)."""
        rate, window_ms = self.measure(now_ms)
        if rate <= bound:
            return 0
        wait = (rate - bound) / bound * window_ms
        return floor(wait) + (1 if wait - floor(wait) >= 0.5 else 0)
