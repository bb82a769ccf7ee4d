"""The arithmetic of quotas: a rate over sampled windows (Q-2 to Q-5, R-3), and the throttle time when the rate exceeds a quota (Q-6).

This module imports nothing of the broker, so that other programs can use it alone. Every operation is done in doubles in the order in which
Kafka does it (`SampledStat`, `Rate`, `SimpleRate`, `QuotaUtils`, since 3.8), so that the results are equal to the last bit.
"""

from __future__ import annotations

from math import floor
from typing import NamedTuple

DEFAULT_SAMPLES = 11
DEFAULT_WINDOW_MS = 1000


class MetricWindows(NamedTuple):
    """The windows over which a broker measures most metrics, such as throttle-time: metrics.num.samples and metrics.sample.window.ms."""

    samples: int = 2
    window_ms: int = 30_000


DEFAULT_METRIC_WINDOWS = MetricWindows()

LARGEST = 2**63 - 1


def round_half_up(value: float) -> int:
    """Return the nearest integer, rounding halves up as Java's `Math.round` does; 2^63 - 1 for infinity and all larger numbers.

    Python's `round` rounds halves to the even neighbour.
    """
    if value >= LARGEST:
        return LARGEST
    below = floor(value)
    return below + 1 if value - below >= 0.5 else below


def throttle_ms(rate: float, bound: float, window_ms: int) -> int:
    """Return the ms until `rate`, measured over `window_ms`, falls to `bound`; 0 if the rate is not above `bound` (Q-5, Q-6).

    rate and bound are per second. The result has no upper limit.
    """
    if not rate > bound:  # false also if the bound is NaN
        return 0
    return round_half_up((rate - bound) / bound * window_ms)


def longest_window_ms(samples: int, window_ms: int) -> int:
    """Return the longest time in ms over which a `SampledRate` of `samples` windows of `window_ms` can measure.

    A single value that is greater than a quota (per second) times this time always exceeds the quota, no matter when it is recorded.
    """
    return (samples + 1) * window_ms - 2


class SampledRate:
    """A rate per second of recorded values over `samples` windows of `window_ms` (Kafka's `Rate`).

    A window starts with its first event, not with a tick of the clock. The values of up to `samples` + 1 windows are stored. `now_ms` must not go
    backwards.
    """

    __slots__ = (
        "_current",
        "_lasts_ms",
        "_oldest_start_ms",
        "_purge_due_ms",
        "_samples",
        "_starts_ms",
        "_sums",
        "_window_ms",
    )

    def __init__(self, samples: int = DEFAULT_SAMPLES, window_ms: int = DEFAULT_WINDOW_MS) -> None:
        if samples < 1 or window_ms < 1:
            raise ValueError(f"samples={samples}, window_ms={window_ms}: both must be at least 1")
        self._samples = samples
        self._window_ms = window_ms
        # The slots as columns: value, start and last event of each. The first is opened by the first event.
        self._sums: list[float] = []
        self._starts_ms: list[int] = []
        self._lasts_ms: list[int] = []
        self._current = 0
        self._oldest_start_ms = 0
        # No slot can be obsolete before this: events only move the true time further away.
        self._purge_due_ms = 0

    def record(self, value: float, now_ms: int) -> None:
        """Add `value` at the time `now_ms`. Zero and negative values count as events, too (Q-2)."""
        current_index = self._current
        if not self._sums:
            self._open_slot(now_ms)
        elif now_ms - self._starts_ms[current_index] >= self._window_ms:
            current_index = self._advance(now_ms)
        self._sums[current_index] += value
        self._lasts_ms[current_index] = now_ms

    def measure(self, now_ms: int) -> float:
        """Return the rate per second at `now_ms` (Q-3 to Q-5). Clears sample windows that have expired, as Kafka does when it measures."""
        window_ms = self.measured_window_ms(now_ms)
        # A plain loop: `sum` compensates rounding errors in newer Pythons, which Kafka does not.
        total = 0.0
        for value in self._sums:
            total += value
        return total / (window_ms / 1000.0)

    def measured_window_ms(self, now_ms: int) -> int:
        """Return the time in ms by which `measure` divides the sum of the values (Q-4).

        As in Kafka, this is at least the duration of `samples` - 1 windows, even directly after the first event. The time before the first event then
        counts as windows without events.
        """
        if not self._sums:
            self._open_slot(now_ms)
        elif now_ms >= self._purge_due_ms:
            self._purge(now_ms)
        return self._span_ms(now_ms - self._oldest_start_ms)

    def record_and_throttle(self, value: float, now_ms: int, bound: float) -> int:
        """Record `value`, and return the throttle time in ms for a quota of `bound` per second, 0 if the rate is not above it (Q-5, Q-6).

        This is `record`, `measure` and `throttle_ms` in one function, for speed: it is called for every request once a quota is configured.
        """
        sums = self._sums
        if not sums:
            self._open_slot(now_ms)
        elif now_ms - self._starts_ms[self._current] >= self._window_ms:
            self._advance(now_ms)
        current_index = self._current
        sums[current_index] += value
        self._lasts_ms[current_index] = now_ms
        if now_ms >= self._purge_due_ms:
            self._purge(now_ms)
        total = 0.0
        for sample in sums:
            total += sample
        window_ms = self._span_ms(now_ms - self._oldest_start_ms)
        rate = total / (window_ms / 1000.0)
        return throttle_ms(rate, bound, window_ms) if rate > bound else 0

    def peek(self, now_ms: int) -> float:
        """Return the rate per second at `now_ms` like `measure`, but change nothing."""
        total, oldest_ms = self._in_view(now_ms)
        return total / (self._span_ms(now_ms - oldest_ms) / 1000.0)

    def total(self, now_ms: int) -> float:
        """Return the sum of the values in the windows that have not expired at `now_ms`. Changes nothing."""
        return self._in_view(now_ms)[0]

    def _in_view(self, now_ms: int) -> tuple[float, int]:
        """Return (sum of the values, start of the oldest window in ms) of the sample windows that have not expired at `now_ms`."""
        total = 0.0
        oldest_ms = now_ms
        for value, start_ms, last_ms in zip(self._sums, self._starts_ms, self._lasts_ms, strict=True):
            if now_ms - last_ms < self._samples * self._window_ms:
                total += value
                oldest_ms = min(oldest_ms, start_ms)
        return total, oldest_ms

    def samples(self) -> tuple[tuple[int, float], ...]:
        """Return (start in ms, sum of values) of each sample window, oldest first. The sum of an expired window is 0."""
        return tuple(sorted(zip(self._starts_ms, self._sums, strict=True)))

    def _span_ms(self, elapsed_ms: int) -> int:
        missing = self._samples - 1 - elapsed_ms // self._window_ms
        if missing > 0:
            elapsed_ms += missing * self._window_ms
        # With one sample nothing may have elapsed yet.
        return elapsed_ms if elapsed_ms > 0 else 1

    def _open_slot(self, now_ms: int) -> None:
        if not self._sums:
            self._oldest_start_ms = now_ms
            self._purge_due_ms = now_ms + self._samples * self._window_ms
        self._sums.append(0.0)
        self._starts_ms.append(now_ms)
        self._lasts_ms.append(now_ms)

    def _advance(self, now_ms: int) -> int:
        self._current = current_index = (self._current + 1) % (self._samples + 1)
        if current_index == len(self._sums):
            self._open_slot(now_ms)
        else:
            self._reset(current_index, now_ms)
            self._oldest_start_ms = min(self._starts_ms)
        return current_index

    def _purge(self, now_ms: int) -> None:
        # By its last event, not by its start: a slot that overlaps the windows in view is kept.
        age_ms = self._samples * self._window_ms
        for slot, last_ms in enumerate(self._lasts_ms):
            if now_ms - last_ms >= age_ms:
                self._reset(slot, now_ms)
        self._oldest_start_ms = min(self._starts_ms)
        self._purge_due_ms = min(self._lasts_ms) + age_ms

    def _reset(self, slot: int, now_ms: int) -> None:
        self._sums[slot] = 0.0
        self._starts_ms[slot] = now_ms
        self._lasts_ms[slot] = now_ms


class SimpleRate(SampledRate):
    """The rate of replication quotas: the sum of the values divided by the time since the oldest sample began, at least one window (R-3).

    `SampledRate`, in contrast, divides by at least `samples` - 1 windows, even directly after the first event.
    """

    __slots__ = ()

    def _span_ms(self, elapsed_ms: int) -> int:
        return max(elapsed_ms, self._window_ms)
