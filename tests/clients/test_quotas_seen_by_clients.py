"""Throttles as each client library sees them, and the rate that Apache Kafka allows the client (X-5, X-6).

The quota windows are those of Kafka: the first ten seconds' worth of bytes is not throttled, and one cycle takes eleven seconds.
Afterwards the result depends on single milliseconds, in Kafka too, so the comparison with Apache Kafka ends before that.
`make long` runs for longer.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

import pytest

from tests.support.clients import KAFKA_PYTHON_WARNINGS
from tests.support.clients.paced import Run, number_in
from tests.support.clients.quota_runs import (
    EVERYBODY,
    QUOTA,
    SAMPLES,
    Ours,
    Who,
    against_kafka,
    against_ours,
    name_of,
    ratio,
)
from tests.support.clients.replay import bytes_within, lateness_ms, replayed, wrong

pytestmark = [
    pytest.mark.clients,
    pytest.mark.java,
    pytest.mark.timeout(180),
    pytest.mark.filterwarnings(KAFKA_PYTHON_WARNINGS, "ignore:unclosed <socket:ResourceWarning"),
]
WINDOW_SECONDS = 10.5
POINTS = 0.05
LATE_MS = 100
everybody = pytest.mark.parametrize("who", EVERYBODY, ids=name_of)


@pytest.fixture(scope="module")
def ours() -> Iterator[Ours]:
    with against_ours(WINDOW_SECONDS, EVERYBODY) as run:
        yield run


@pytest.fixture(scope="module")
def real() -> dict[Who, Run]:
    return against_kafka(WINDOW_SECONDS, EVERYBODY)


@pytest.mark.rule("X-6")
@everybody
def test_throttle_times_of_each_client_library_equal_times_computed_from_the_quota(ours: Ours, who: Who) -> None:
    charges = ours.charges(who)
    assert max(charge.throttle_ms for charge in charges) > 0
    assert wrong(charges, QUOTA, SAMPLES) == []


@pytest.mark.rule("X-5", "X-6")
@everybody
def test_bytes_charged_to_each_client_are_within_3_percent_of_a_quota_simulation(ours: Ours, who: Who) -> None:
    charges, within_ms = ours.charges(who), int(WINDOW_SECONDS * 1000)
    charged, possible = bytes_within(charges, within_ms), bytes_within(replayed(charges, QUOTA, SAMPLES), within_ms)
    assert 0.97 * possible <= charged <= 1.03 * possible
    assert 0.95 <= charged / (QUOTA * WINDOW_SECONDS) <= 1.4


@pytest.mark.rule("X-5")
@everybody
def test_connection_of_each_client_library_is_muted_for_the_throttle_time(ours: Ours, who: Who) -> None:
    late_ms = lateness_ms(ours.kafka, [name_of(who)])
    assert min(late_ms) >= 0
    assert median(late_ms) < LATE_MS


@everybody
def test_throttled_clients_lose_and_duplicate_no_records(ours: Ours, who: Who) -> None:
    numbers = ours.runs[who].numbers
    assert numbers == list(range(len(numbers)))
    if who[0] == "producer":
        assert [number_in(value) for value in ours.records(who)] == numbers


@pytest.mark.rule("T-1")
@pytest.mark.parametrize("role", ["producer", "consumer"])
def test_confluent_kafka_reports_throttle_times_in_callback_and_statistics(ours: Ours, role: str) -> None:
    client = (role, "confluent-kafka")
    run = ours.runs[client]
    sent = [charge.throttle_ms for charge in ours.charges(client) if charge.throttle_ms]
    assert len(run.throttles_ms) > 0
    assert run.throttles_ms == sent[: len(run.throttles_ms)]
    assert len(sent) - len(run.throttles_ms) <= 1  # a consumer that closes may miss the response to its last fetch
    assert run.metrics["throttle-max"] in sent


@pytest.mark.rule("T-1")
@pytest.mark.parametrize("role", ["producer", "consumer"])
@pytest.mark.parametrize("library", ["kafka-python", "java"])
def test_kafka_python_and_java_metrics_contain_the_throttle_times_sent_by_the_broker(
    ours: Ours, role: str, library: str
) -> None:
    """The metrics count every response of any API until the metrics are read."""
    client = (role, library)
    prefix = "" if library == "kafka-python" else {"producer": "produce-", "consumer": "fetch-"}[role]
    metrics = ours.runs[client].metrics
    sent = [request.throttle_time_ms for request in ours.kafka.journal.requests(client_id=name_of(client))]
    assert metrics[f"{prefix}throttle-time-max"] in {max(sent), max(sent[:-1])}
    assert metrics[f"{prefix}throttle-time-avg"] == pytest.approx(sum(sent) / len(sent), rel=0.1)


@pytest.mark.rule("X-6")
@everybody
def test_throttled_client_rate_is_within_5_percent_of_the_rate_with_real_kafka(
    ours: Ours, real: dict[Who, Run], who: Who
) -> None:
    assert real[who].numbers == list(range(len(real[who].numbers)))
    ratios = [ratio(runs[who], WINDOW_SECONDS) for runs in (ours.runs, real)]
    assert abs(ratios[0] - ratios[1]) <= POINTS, ratios
