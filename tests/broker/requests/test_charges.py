"""Quota charges of each request, their order, and throttled fetches (T-2 to T-5, Q-11 to Q-15)."""

from __future__ import annotations

import pytest

from kafkaproto.broker.quota.client_quotas import ClientQuotas
from kafkaproto.broker.quota.entities import QuotaEntity
from kafkaproto.broker.quota.store import ClientQuotaStore
from kafkaproto.broker.quota.windows import SampledRate
from kafkaproto.broker.requests.charges import charge_exempt, charge_fetch, charge_produce, charge_request
from kafkaproto.broker.requests.exchange import Charged


def quotas(produce: float = 0, fetch: float = 0, request: float = 0) -> ClientQuotas:
    store = ClientQuotaStore()
    for key, value in (("producer_byte_rate", produce), ("consumer_byte_rate", fetch), ("request_percentage", request)):
        if value:
            store.set(QuotaEntity(user="u"), key, value)
    return ClientQuotas(store)


def which(charged: Charged) -> tuple[int, str | None]:
    return charged.throttle_ms, charged.reason.quota if charged.reason else None


@pytest.mark.rule("T-3")
def test_produce_is_throttled_by_the_quota_that_requires_the_longer_throttle() -> None:
    q = quotas(produce=1000, request=1)
    assert which(charge_produce(q, "u", "c", 15000, 0.1, -1, 0)) == (5000, "Produce")
    assert which(charge_produce(q, "u", "c", 0, 0.1, 1, 0)) == (5000, "Produce")
    q = quotas(produce=1000, request=1)
    assert which(charge_produce(q, "u", "c", 10_200, 11, 1, 0)) == (1000, "Request")


@pytest.mark.rule("T-3")
def test_produce_with_acks_0_is_charged_for_bytes_but_not_for_request_time() -> None:
    q = quotas(produce=1000, request=1)
    assert which(charge_produce(q, "u", "c", 15000, 500, 0, 0)) == (5000, "Produce")
    assert charge_request(q, "u", "c", 0, 0).throttle_ms == 0


@pytest.mark.rule("Q-17")
def test_throttle_cause_is_the_request_quota_if_byte_and_request_throttle_are_equal() -> None:
    q = quotas(produce=1000, fetch=1000, request=1)
    assert which(charge_produce(q, "u", "c", 10_500, 10.5, 1, 0)) == (500, "Request")
    q = quotas(fetch=1000, request=1)
    assert which(charge_fetch(q, "u", "c", 10_500, 10.5, 0)) == (500, "Request")


@pytest.mark.rule("Q-12")
def test_request_quota_metric_has_no_throttle_time_if_the_byte_throttle_is_longer() -> None:
    q = quotas(produce=1, fetch=1, request=0.01)
    assert which(charge_produce(q, "u", "c", 100, 50, 1, 0)) == (90_000, "Produce")
    assert which(charge_fetch(q, "u", "c", 100, 50, 0)) == (90_000, "Fetch")
    noted = {m.quota: m.last_throttle_ms for m in q.metrics(0)}
    assert noted == {"Produce": 90_000, "Fetch": 90_000, "Request": None}


@pytest.mark.rule("T-2")
def test_client_with_request_time_7_1_percent_above_quota_is_throttled_for_710_ms() -> None:
    q = quotas(request=1)
    assert charge_request(q, "u", "c", 10, 0).throttle_ms == 0
    charged = charge_request(q, "u", "c", 0.71, 0)
    assert which(charged) == (710, "Request")
    assert charged.reason is not None and charged.reason.value == 0.71


@pytest.mark.rule("Q-15")
def test_6000_ms_of_exempt_request_time_are_recorded_but_throttle_no_client() -> None:
    q = quotas(request=1)
    assert charge_exempt(q, 6000, 0).throttle_ms == 0
    assert charge_request(q, "u", "c", 0, 0).throttle_ms == 0
    assert q.exempt_request_time.peek(0) == 200  # over 30 s, one of two windows of metrics


@pytest.mark.rule("T-3", "Q-15")
@pytest.mark.parametrize(("acks", "exempt_percent"), [(0, 20), (1, 0), (-1, 0)])
def test_request_time_of_a_produce_is_exempt_from_the_request_quota_only_with_acks_0(
    acks: int, exempt_percent: float
) -> None:
    q = quotas(produce=1000, request=1)
    charge_produce(q, "u", "c", 10, 600, acks, 0)
    assert q.exempt_request_time.peek(0) == exempt_percent


@pytest.mark.rule("T-4")
def test_bytes_of_a_throttled_fetch_are_credited_back_to_the_quota() -> None:
    q = quotas(fetch=1000)
    assert which(charge_fetch(q, "u", "c", 10_050, 0, 0)) == (50, "Fetch")
    # the same fetch 50 ms later is charged from zero again, and is now within the longer window.
    assert charge_fetch(q, "u", "c", 10_050, 0, 50).throttle_ms == 0
    # and was not taken back this time
    assert charge_fetch(q, "u", "c", 10_050, 0, 50).throttle_ms > 0


@pytest.mark.rule("Q-13")
def test_fetch_throttled_by_the_request_quota_is_not_charged_to_the_fetch_byte_quota() -> None:
    q = quotas(fetch=1000, request=1)
    assert which(charge_fetch(q, "u", "c", 9000, 10.5, 0)) == (500, "Request")
    assert q.fetch.record("u", "c", 0, 0) == 0
    assert next(q.fetch.metrics(0)).rate == 0


@pytest.mark.rule("Q-13")
def test_bytes_of_a_throttled_fetch_are_subtracted_from_the_current_quota_sample() -> None:
    q, expected = quotas(fetch=1000), SampledRate()
    for now_ms, value in ((0, 30_000), (999, 40_000), (11_500, 9_000)):
        wait_ms = expected.record_and_throttle(value, now_ms, 1000)
        if wait_ms:
            expected.record(-value, now_ms)
        assert charge_fetch(q, "u", "c", value, 0, now_ms).throttle_ms == wait_ms


@pytest.mark.rule("Q-14")
def test_throttle_of_a_retried_4096_byte_fetch_alternates_between_6384_and_6000_ms() -> None:
    q, now_ms, waits = quotas(fetch=250), 0, []
    for _ in range(6):
        charged = charge_fetch(q, "u", "c", 4096, 0, now_ms)
        waits.append(charged.throttle_ms)
        now_ms += charged.throttle_ms
    assert waits == [6384, 6000] * 3


@pytest.mark.rule("Q-1")
def test_requests_are_not_charged_to_any_client_if_no_quotas_are_set() -> None:
    q = quotas()
    assert charge_fetch(q, "u", "c", 10**9, 10**9, 0).throttle_ms == 0
    assert charge_produce(q, "u", "c", 10**9, 10**9, 1, 0).throttle_ms == 0
    assert list(q.metrics(0)) == []
