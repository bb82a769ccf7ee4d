"""Q-2 to Q-6 word by word: slow, with nothing remembered between calls, to judge everything that is faster.

Imports nothing of what it judges. `Transcription` keeps one rate per identity and is fed with (time, value, bound): it
judges the windows, the throttles of a simulation and those of a journal.
"""

from __future__ import annotations

from collections.abc import Hashable
from math import floor

from kafkaproto.conformance.slow_rate import SlowRate


class Transcription:
    """What each identity must be throttled for. samples, window_ms: quota.window.num and .size.seconds."""

    def __init__(self, samples: int = 11, window_ms: int = 1000) -> None:
        self.samples, self.window_ms = samples, window_ms
        self.rates: dict[Hashable, SlowRate] = {}

    def rate(self, identity: Hashable) -> SlowRate:
        return self.rates.setdefault(identity, SlowRate(self.samples, self.window_ms))

    def record(self, identity: Hashable, now_ms: int, value: float, bound: float) -> int:
        """`value` is recorded at `now_ms`, when `bound` holds: milliseconds to throttle."""
        rate = self.rate(identity)
        rate.record(value, now_ms)
        return rate.throttle_ms(now_ms, bound)

    def unrecord(self, identity: Hashable, now_ms: int, value: float) -> None:
        """Q-13."""
        self.rate(identity).record(-value, now_ms)


class SlowBucket:
    """Q-18: tokens that come back at the bound, at most what all windows bring. One that nobody has used is full."""

    def __init__(self, samples: int = 11, window_ms: int = 1000) -> None:
        self.n, self.w = samples, window_ms
        self.tokens = 0.0
        self.last_ms = 0

    def refill(self, now_ms: int, bound: float) -> None:
        back = bound * ((now_ms - self.last_ms) / 1000.0)
        self.tokens = min(self.n * (self.w / 1000.0) * bound, self.tokens + back)
        self.last_ms = now_ms

    def take(self, count: int, now_ms: int, bound: float, strict: bool) -> int | None:
        """Milliseconds to wait; None: nothing. Strict: nothing is taken of a bucket below zero, and else nobody waits."""
        self.refill(now_ms, bound)
        is_refused = strict and self.tokens < 0
        if not is_refused:
            self.tokens -= count
        if self.tokens >= 0 or (strict and not is_refused):
            return None
        return floor(-self.tokens / bound * 1000 + 0.5)
