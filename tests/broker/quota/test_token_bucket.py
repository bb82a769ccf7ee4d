"""Arithmetic of the token bucket, with the numbers of Kafka's own tests."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest

from kafkaproto.broker.quota.token_bucket import TokenBucket, refill_ms

NOW_MS = 1_700_000_000_000


@pytest.mark.rule("Q-18")
def test_number_of_tokens_in_a_new_bucket_is_quota_rate_times_total_window_length() -> None:
    assert TokenBucket(10, 2000).measure(5, NOW_MS) == 100  # TokenBucketTest: 10 samples of 2 s, 5 a second
    assert TokenBucket().measure(2, NOW_MS) == 22


@pytest.mark.rule("Q-18")
def test_token_bucket_refills_at_the_quota_rate_up_to_its_maximum() -> None:
    """The steps of Kafka's TokenBucketTest."""
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
def test_throttle_time_of_a_negative_token_bucket_is_the_time_to_refill_to_zero() -> None:
    assert [refill_ms(tokens, 2) for tokens in (22, 0, -1, -8, -0.0009)] == [0, 0, 500, 4000, 0]


@pytest.mark.rule("Q-10")
def test_token_bucket_refills_at_its_new_rate_immediately_after_the_rate_changes() -> None:
    bucket = TokenBucket()
    assert bucket.record(30, 2, NOW_MS) == -8
    assert bucket.measure(1, NOW_MS) == -8
    assert refill_ms(bucket.tokens, 1) == 8000
    assert bucket.measure(4, NOW_MS + 1000) == -4
    assert bucket.measure(0.1, NOW_MS + 3_600_000) == 0.1 * 11


@pytest.mark.rule("Q-22")
def test_token_bucket_charged_under_quota_nan_never_throttles_under_a_later_quota() -> None:
    bucket = TokenBucket()
    bucket.record(30, math.nan, NOW_MS)
    for bound in (1.0, 0.5):
        assert math.isnan(bucket.record(30, bound, NOW_MS + 1000)) and refill_ms(bucket.tokens, bound) == 0


def test_token_bucket_rejects_windows_of_zero_length() -> None:
    with pytest.raises(ValueError, match="window_ms=0"):
        TokenBucket(1, 0)


def test_token_bucket_module_imports_no_other_module_of_the_broker() -> None:
    code = "import kafkaproto.broker.quota.token_bucket, sys; print([m for m in sys.modules if m.startswith('kafkap')])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    quota = [f"kafkaproto.broker.quota{name}" for name in ("", ".windows", ".token_bucket")]
    assert out.strip() == str(["kafkaproto", "kafkaproto.broker", *quota])
