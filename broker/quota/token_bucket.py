"""The arithmetic of controller mutation quotas: a token bucket and the time until it is refilled (Q-18, KIP-599).

This module depends only on `windows`. Every operation is done in doubles in the order in which Kafka does it (`TokenBucket`,
`ControllerMutationQuotaManager.throttleTimeMs`), so that the results are equal to the last bit.
"""

from __future__ import annotations

from kafkaproto.broker.quota.windows import DEFAULT_SAMPLES, DEFAULT_WINDOW_MS, round_half_up


def refill_ms(tokens: float, bound: float) -> int:
    """Return the time in ms in which a bucket with `tokens` tokens (below zero) refills to zero; 0 if `tokens` is not below zero.

    bound: the tokens that the bucket gains per second.
    """
    if not tokens < 0:  # NaN if the quota is NaN
        return 0
    return round_half_up(-tokens / bound * 1000)


def _lower(burst: float, tokens: float) -> float:
    """Return `tokens`, but at most `burst`, which is the most that a bucket holds. NaN remains NaN, as with Java's `Math.min`."""
    return burst if tokens >= burst else tokens


class TokenBucket:
    """A bucket that gains `bound` tokens a second, and holds at most as many as it gains in `samples` windows of `window_ms`.

    The bound is an argument of every call, so that a changed bound applies at once to the present tokens (Q-10). Times are in milliseconds
    since the epoch. A new bucket counts as empty at time 0, and is therefore full at the first call.
    """

    __slots__ = ("_samples", "_updated_ms", "_window_seconds", "tokens")

    def __init__(self, samples: int = DEFAULT_SAMPLES, window_ms: int = DEFAULT_WINDOW_MS) -> None:
        if samples < 1 or window_ms < 1:
            raise ValueError(f"samples={samples}, window_ms={window_ms}: both must be at least 1")
        self._samples = samples
        self._window_seconds = window_ms / 1000.0
        self._updated_ms = 0
        self.tokens = 0.0
        """The number of tokens after the last call of `measure` or `record`. While it is below zero, the client must wait."""

    def measure(self, bound: float, now_ms: int) -> float:
        """Return the tokens in the bucket at `now_ms`. Below zero, the quota is exhausted. bound: the tokens that the bucket gains per second."""
        elapsed_seconds = (now_ms - self._updated_ms) / 1000.0
        self.tokens = _lower(self._burst(bound), self.tokens + bound * elapsed_seconds)
        self._updated_ms = now_ms
        return self.tokens

    def record(self, value: float, bound: float, now_ms: int) -> float:
        """Take `value` tokens, even if the bucket has fewer, and return how many are left. bound: the tokens that the bucket gains per second."""
        self.tokens = _lower(self._burst(bound), self.measure(bound, now_ms) - value)
        return self.tokens

    def _burst(self, bound: float) -> float:
        return self._samples * self._window_seconds * bound
