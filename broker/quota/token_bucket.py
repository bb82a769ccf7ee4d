"""The arithmetic of controller mutation quotas: tokens that come back with time, and how long until there are some (Q-18, KIP-599).

Pure numbers, like `windows`: knows no quota, no client, no clock, and imports nothing but `windows`. Every operation is
done in doubles in the order in which Kafka does it (`TokenBucket`, `ControllerMutationQuotaManager.throttleTimeMs`), so
that the results are equal to the last bit.
"""

from __future__ import annotations

from kafkaproto.broker.quota.windows import DEFAULT_SAMPLES, DEFAULT_WINDOW_MS, round_half_up


def refill_ms(tokens: float, bound: float) -> int:
    """Milliseconds until `tokens` below zero have come back at `bound` per second; 0 for none missing."""
    if tokens >= 0:
        return 0
    return round_half_up(-tokens / bound * 1000)


class TokenBucket:
    """Tokens that come back at `bound` per second, and at most what `samples` windows of `window_ms` bring.

    The bound is an argument of every call, so that a changed one holds at once, for the tokens that there are (Q-10).
    Times are milliseconds since the epoch: a new bucket was empty at time 0, which makes it full by now.
    """

    __slots__ = ("_samples", "_updated_ms", "_window_seconds", "tokens")

    def __init__(self, samples: int = DEFAULT_SAMPLES, window_ms: int = DEFAULT_WINDOW_MS) -> None:
        if samples < 1 or window_ms < 1:
            raise ValueError(f"samples={samples}, window_ms={window_ms}: both must be at least 1")
        self._samples = samples
        self._window_seconds = window_ms / 1000.0
        self._updated_ms = 0
        self.tokens = 0.0
        """As of the last call; below zero: somebody must wait."""

    def measure(self, bound: float, now_ms: int) -> float:
        """The tokens at `now_ms`. They are exhausted when below zero: none left is still within the quota."""
        elapsed_seconds = (now_ms - self._updated_ms) / 1000.0
        self.tokens = min(self._burst(bound), self.tokens + bound * elapsed_seconds)
        self._updated_ms = now_ms
        return self.tokens

    def record(self, value: float, bound: float, now_ms: int) -> float:
        """Take `value` tokens, as many as there are or more; the tokens afterwards."""
        self.tokens = min(self._burst(bound), self.measure(bound, now_ms) - value)
        return self.tokens

    def _burst(self, bound: float) -> float:
        return self._samples * self._window_seconds * bound
