"""The arithmetic of the token bucket, with the numbers of Kafka's own tests."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kafkaproto.broker.quota.token_bucket import TokenBucket, refill_ms

NOW_MS = 1_700_000_000_000


@pytest.mark.rule("Q-18")
def test_a_new_bucket_is_full_and_holds_what_its_windows_bring() -> None:
    assert TokenBucket(10, 2000).measure(5, NOW_MS) == 100  # TokenBucketTest: 10 samples of 2 s, 5 a second
    assert TokenBucket().measure(2, NOW_MS) == 22


@pytest.mark.rule("Q-18")
def test_trace_of_TokenBucketTest() -> None:
    bucket = TokenBucket(10, 2000)
    bucket.record(60, 5, NOW_MS)
    assert bucket.measure(5, NOW_MS) == 40
    assert bucket.measure(5, NOW_MS + 2000) == 50
    assert bucket.measure(5, NOW_MS + 4000) == 60
    bucket.record(60, 5, NOW_MS + 4000)
    assert bucket.measure(5, NOW_MS + 4000) == 0
    assert bucket.measure(5, NOW_MS + 5000) == 5
    bucket.record(500, 5, NOW_MS + 5000)
    assert bucket.measure(5, NOW_MS + 5000) == -495
    assert bucket.measure(5, NOW_MS + 60_000) == -220
    bucket.record(-1000, 5, NOW_MS + 60_000)
    assert bucket.measure(5, NOW_MS + 60_000) == 100


@pytest.mark.rule("Q-18")
def test_none_left_is_within_the_quota_and_below_zero_waits_for_what_is_missing() -> None:
    assert [refill_ms(tokens, 2) for tokens in (22, 0, -1, -8, -0.0009)] == [0, 0, 500, 4000, 0]


@pytest.mark.rule("Q-10")
def test_a_changed_bound_holds_at_once_for_the_tokens_that_there_are() -> None:
    bucket = TokenBucket()
    assert bucket.record(30, 2, NOW_MS) == -8
    assert bucket.measure(1, NOW_MS) == -8
    assert refill_ms(bucket.tokens, 1) == 8000
    assert bucket.measure(4, NOW_MS + 1000) == -4
    assert bucket.measure(0.1, NOW_MS + 3_600_000) == 0.1 * 11


def test_a_bucket_needs_a_window_and_a_millisecond() -> None:
    with pytest.raises(ValueError, match="window_ms=0"):
        TokenBucket(1, 0)


def test_the_bucket_can_be_used_alone() -> None:
    code = "import kafkaproto.broker.quota.token_bucket, sys; print([m for m in sys.modules if m.startswith('kafkap')])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    quota = [f"kafkaproto.broker.quota{name}" for name in ("", ".windows", ".token_bucket")]
    assert out.strip() == str(["kafkaproto", "kafkaproto.broker", *quota])
