"""Q-2 to Q-6 word by word: slow, with nothing remembered between calls, to judge everything that is faster.

Imports nothing of what it judges. `Transcription` keeps one rate per identity and is fed with (time, value, bound): it
judges the windows, the throttles of a simulation and those of a journal.
"""

from __future__ import annotations

from collections.abc import Hashable
from copy import copy
from math import floor


class _Sample:
    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.value = 0.0
        self.start_ms = self.last_ms = now_ms


class SlowRate:
    """One rate, one object per sample."""

    def __init__(self, samples: int = 11, window_ms: int = 1000) -> None:
        self.n, self.w = samples, window_ms
        self.slots: list[_Sample] = []
        self.current = 0

    def record(self, value: float, now_ms: int) -> None:
        """Q-2."""
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
        """(rate per second, window in milliseconds): Q-3 to Q-5."""
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
        """The rate per second for somebody who only looks: what looking forgets is forgotten in a copy."""
        other = SlowRate(self.n, self.w)
        other.slots = [copy(sample) for sample in self.slots]
        other.current = self.current
        return other.measure(now_ms)[0]

    def throttle_ms(self, now_ms: int, bound: float) -> int:
        """Q-5, Q-6."""
        rate, window_ms = self.measure(now_ms)
        if rate <= bound:
            return 0
        wait = (rate - bound) / bound * window_ms
        return floor(wait) + (1 if wait - floor(wait) >= 0.5 else 0)


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
