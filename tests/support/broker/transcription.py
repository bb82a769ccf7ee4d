"""A slow, stateless transcription of Q-2 to Q-6, used as a reference for faster implementations.

It imports nothing of the code under test. `Transcription` keeps one rate per identity and is fed with (time, value, bound). It checks the
windows, the throttles of a simulation and those of a journal.
"""

from __future__ import annotations

from collections.abc import Hashable
from math import floor

from kafkaproto.conformance.slow_rate import SlowRate


class Transcription:
    """Computes the throttle time of each identity. `samples` and `window_ms` are `quota.window.num` and `quota.window.size.seconds`."""

    def __init__(self, samples: int = 11, window_ms: int = 1000) -> None:
        self.samples, self.window_ms = samples, window_ms
        self.rates: dict[Hashable, SlowRate] = {}

    def rate(self, identity: Hashable) -> SlowRate:
        return self.rates.setdefault(identity, SlowRate(self.samples, self.window_ms))

    def record(self, identity: Hashable, now_ms: int, value: float, bound: float) -> int:
        """Record `value` at `now_ms` under the limit `bound` and return the throttle time in ms."""
        rate = self.rate(identity)
        rate.record(value, now_ms)
        return rate.throttle_ms(now_ms, bound)

    def unrecord(self, identity: Hashable, now_ms: int, value: float) -> None:
        """Take back a recorded value (Q-13)."""
        self.rate(identity).record(-value, now_ms)


class SlowBucket:
    """A token bucket (Q-18) that refills at the bound, up to the tokens of all windows. An unused bucket is full."""

    def __init__(self, samples: int = 11, window_ms: int = 1000) -> None:
        self.n, self.w = samples, window_ms
        self.tokens = 0.0
        self.last_ms = 0

    def refill(self, now_ms: int, bound: float) -> None:
        new_tokens = bound * ((now_ms - self.last_ms) / 1000.0)
        self.tokens = min(self.n * (self.w / 1000.0) * bound, self.tokens + new_tokens)
        self.last_ms = now_ms

    def take(self, count: int, now_ms: int, bound: float, strict: bool) -> int | None:
        """Take `count` tokens and return the throttle time in ms, or None if nothing was taken.

        A strict bucket gives no tokens while it is below zero; any other bucket never throttles.
        """
        self.refill(now_ms, bound)
        is_refused = strict and self.tokens < 0
        if not is_refused:
            self.tokens -= count
        if self.tokens >= 0 or (strict and not is_refused):
            return None
        return floor(-self.tokens / bound * 1000 + 0.5)
