"""Arithmetic of quota windows, compared with the numbers of Kafka's tests and with a slow reference implementation."""

from __future__ import annotations

import subprocess
import sys
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaproto.broker.quota.windows import SampledRate, round_half_up, throttle_ms
from kafkaproto.conformance.slow_rate import SlowRate
from tests.support.broker.transcription import Transcription

_STEPS = st.lists(
    st.tuples(
        st.one_of(st.integers(0, 30), st.sampled_from([999, 1000, 1001, 10999, 11000]), st.integers(0, 30_000)),
        st.one_of(st.integers(0, 50_000), st.floats(-10, 1000, allow_nan=False)),
        st.booleans(),
    ),
    max_size=60,
)


@pytest.mark.rule("Q-6")
@given(_STEPS, st.sampled_from([1, 2, 3, 11]), st.sampled_from([1000, 500, 3]), st.sampled_from([0.01, 1.0, 500, 3333]))
def test_sampled_quota_rate_equals_that_of_a_slow_reference_implementation(
    steps: list[tuple[int, float, bool]], samples: int, window_ms: int, bound: float
) -> None:
    fast, slow, now_ms = SampledRate(samples, window_ms), SlowRate(samples, window_ms), 1_700_000_000_000
    for delta_ms, value, taken_back in steps:
        now_ms += delta_ms
        slow.record(value, now_ms)
        assert fast.record_and_throttle(value, now_ms, bound) == slow.throttle_ms(now_ms, bound)
        assert (fast.measure(now_ms), fast.measured_window_ms(now_ms)) == slow.measure(now_ms)
        if taken_back:
            slow.record(-value, now_ms)
            fast.record(-value, now_ms)


@pytest.mark.rule("Q-3")
@given(_STEPS, st.integers(0, 20_000))
def test_peeking_at_a_sampled_rate_does_not_change_any_later_measurement(
    steps: list[tuple[int, float, bool]], later_ms: int
) -> None:
    looked_at, other, now_ms = SampledRate(), SampledRate(), 0
    for delta_ms, value, _ in steps:
        now_ms += delta_ms
        looked_at.record(value, now_ms)
        other.record(value, now_ms)
        looked_at.peek(now_ms + later_ms)
        assert looked_at.peek(now_ms) == other.measure(now_ms) == looked_at.measure(now_ms)


@pytest.mark.rule("Q-7")
@pytest.mark.parametrize(
    ("bound", "size", "expected"),
    [(10000, 105000, 500), (10000, 100000, 0), (1024, 20480, 10000), (1000, 15000, 5000), (1000, 10050, 50)],
)
def test_first_request_is_throttled_only_for_bytes_beyond_ten_seconds_of_quota(
    bound: int, size: int, expected: int
) -> None:
    assert SampledRate().record_and_throttle(size, 123, bound) == expected


@pytest.mark.rule("Q-7")
def test_10001_bytes_in_10_s_at_a_quota_of_1000_bytes_per_s_are_throttled_for_1_ms() -> None:
    rate = SampledRate()
    assert rate.record_and_throttle(10_000, 5, 1000) == 0
    assert rate.record_and_throttle(1, 5, 1000) == 1


@pytest.mark.rule("Q-7")
def test_request_5_s_after_a_burst_is_throttled_but_a_request_11_s_after_is_not() -> None:
    rate = SampledRate()
    assert rate.record_and_throttle(15000, 0, 1000) == 5000
    assert rate.record_and_throttle(1000, 5000, 1000) == 6000
    rested = SampledRate()
    assert rested.record_and_throttle(15000, 0, 1000) == 5000
    assert rested.record_and_throttle(1000, 11000, 1000) == 0


@pytest.mark.rule("Q-7")
@pytest.mark.parametrize(("at_ms", "expected"), [(1, 4999), (500, 4500), (999, 4001), (1000, 5000)])
def test_throttle_time_shrinks_during_a_sample_window_and_rises_at_the_next_window(at_ms: int, expected: int) -> None:
    rate = SampledRate()
    rate.record(15000, 0)
    assert throttle_ms(rate.measure(at_ms), 1000, rate.measured_window_ms(at_ms)) == expected


@pytest.mark.rule("Q-7")
def test_client_that_sends_twice_its_quota_is_first_throttled_after_five_seconds() -> None:
    rate = SampledRate()
    waits = [rate.record_and_throttle(1000, tick * 100, 5000) for tick in range(51)]
    assert waits == [0] * 50 + [200]


@pytest.mark.rule("Q-6")
def test_requests_after_a_burst_are_throttled_until_the_samples_of_the_burst_expire() -> None:
    """The steps of Kafka's ClientQuotaManagerTest.testQuotaViolation."""
    rate, now_ms = SampledRate(), 0
    for _ in range(10):
        assert rate.record_and_throttle(400, now_ms, 500) == 0
        now_ms += 1000
    now_ms += 500
    assert rate.record_and_throttle(2300, now_ms, 500) == 2100
    assert rate.measure(now_ms) == 600
    now_ms += 2100
    trace = []
    for value in [400] * 10 + [0]:
        trace.append(rate.record_and_throttle(value, now_ms, 500))
        now_ms += 1000
    assert trace == [1200] * 8 + [1700, 0, 0]


@pytest.mark.rule("Q-6")
def test_request_quota_of_1_percent_throttles_for_10_s_after_500_ms_of_handler_time() -> None:
    rate, now_ms, bound = SampledRate(), 0, 1.0

    def charge(thread_ms: float) -> int:
        rate.record(thread_ms * 100 / 1000, now_ms)
        return min(throttle_ms(rate.measure(now_ms), bound, rate.measured_window_ms(now_ms)), 1000)

    for _ in range(10):
        assert charge(4) == 0
        now_ms += 1000
    now_ms += 500
    assert charge(67.1) == 210
    now_ms += 210
    for _ in range(10):
        charge(4)
        now_ms += 1000
    assert charge(500) == 1000
    for _ in range(10):
        now_ms += 1000
        assert charge(0) == 1000
    now_ms += 1000
    assert charge(0) == 0


@pytest.mark.rule("Q-14")
def test_4096_byte_fetch_at_250_bytes_per_s_is_throttled_at_each_of_ten_tries() -> None:
    rate, slow, now_ms, waits = SampledRate(), SlowRate(11, 1000), 0, []
    for late_ms in (5, 11, 1, 4, 3, 9, 0, 0, 2, 7):
        wait_ms = rate.record_and_throttle(4096, now_ms, 250)
        slow.record(4096, now_ms)
        assert wait_ms == slow.throttle_ms(now_ms, 250)
        rate.record(-4096, now_ms)
        slow.record(-4096, now_ms)
        waits.append(wait_ms)
        now_ms += wait_ms + late_ms
    assert waits[0] == 6384
    assert all(wait > 5000 for wait in waits)
    assert SampledRate().record_and_throttle(4096, 0, 250) == 6384


@pytest.mark.rule("Q-14")
def test_sampled_rate_alternates_throttles_of_6384_and_6000_ms_for_a_retried_fetch() -> None:
    rate, now_ms, waits = SampledRate(), 0, []
    for _ in range(4):
        waits.append(rate.record_and_throttle(4096, now_ms, 250))
        rate.record(-4096, now_ms)
        now_ms += waits[-1]
    assert waits == [6384, 6000, 6384, 6000]


@pytest.mark.rule("Q-4")
def test_first_sample_of_a_rate_is_averaged_over_all_configured_sample_windows() -> None:
    """The window of Kafka's RateTest without prior samples."""
    for samples in (2, 5, 11):
        rate = SampledRate(samples, 1000)
        rate.record(50, 0)
        assert rate.measure(999) == 50 / ((samples - 1) + 0.999)


@pytest.mark.rule("Q-4")
def test_sampled_rate_with_3_samples_of_30_s_is_measured_over_75_s_at_second_45() -> None:
    """Kafka's MetricsTest.testRateWindowing."""
    rate = SampledRate(3, 30_000)
    rate.record(100, 0)
    rate.record(100, 30_000)
    assert rate.measured_window_ms(45_000) == 75_000
    assert rate.measure(45_000) == 200 / 75


@pytest.mark.rule("Q-4")
def test_rate_with_one_sample_is_measured_over_at_least_one_millisecond() -> None:
    rate = SampledRate(1, 1000)
    assert rate.record_and_throttle(3, 77, 1000) == 2


@pytest.mark.rule("Q-3")
def test_recording_negative_zero_bytes_delays_the_expiry_of_the_current_rate_sample() -> None:
    renewed, purged = SampledRate(), SampledRate()
    for rate in (renewed, purged):
        rate.record(500, 0)
    renewed.record(-0.0, 999)
    assert renewed.measure(11_998) > 0
    assert purged.measure(11_998) == 0


@pytest.mark.rule("Q-6")
def test_throttle_times_are_rounded_half_up() -> None:
    assert [round_half_up(x) for x in (0.49999999999999994, 0.5, 1.5, 2.5, -0.5)] == [0, 1, 2, 3, 0]


@pytest.mark.rule("Q-6")
def test_throttle_times_above_the_int64_maximum_are_rounded_to_the_int64_maximum() -> None:
    assert [round_half_up(x) for x in (2.0**63, 1e300, float("inf"))] == [2**63 - 1] * 3
    assert round_half_up(2.0**62) == 2**62
    assert throttle_ms(1.0, 5e-324, 10_000) == 2**63 - 1


def test_sampled_rate_with_a_sample_count_of_zero_raises_a_value_error() -> None:
    with pytest.raises(ValueError, match="samples=0"):
        SampledRate(0, 1000)


def test_quota_windows_module_imports_no_other_module_of_the_broker() -> None:
    code = "import kafkaproto.broker.quota.windows, sys; print([m for m in sys.modules if m.startswith('kafkap')])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert (
        out.strip()
        == "['kafkaproto', 'kafkaproto.broker', 'kafkaproto.broker.quota', 'kafkaproto.broker.quota.windows']"
    )


@pytest.mark.rule("Q-6")
@pytest.mark.parametrize("seed", range(4))
def test_throttle_times_for_random_request_sizes_equal_the_reference_implementation(seed: int) -> None:
    rng, transcription = Random(seed), Transcription()
    rates = {identity: SampledRate() for identity in ("quiet", "busy", "changing", "one too large")}
    bounds = dict.fromkeys(rates, 1000.0)
    now_ms, throttled = 1_700_000_000_000, 0
    random, names = rng.random, list(rates)
    for n in range(250_000):
        # Bursts at one instant, steps within a window, and now and then a rest in which all samples become obsolete.
        step = random()
        now_ms += 0 if step < 0.3 else int(step * 300) if step < 0.9998 else 12_000
        identity = names[n & 3]
        value = random() * 150 * (80 if identity == "one too large" else 1)
        if identity == "changing" and step > 0.99:
            bounds[identity] = random() * 2000 + 1e-3
        bound = bounds[identity]
        wait_ms = rates[identity].record_and_throttle(value, now_ms, bound)
        assert wait_ms == transcription.record(identity, now_ms, value, bound)
        throttled += wait_ms > 0
        if wait_ms and step < 0.5:  # as a throttled fetch
            rates[identity].record(-value, now_ms)
            transcription.unrecord(identity, now_ms, value)
    assert 50_000 < throttled < 200_000
