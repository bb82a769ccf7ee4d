"""What each client library sees of a quota, and that Apache Kafka lets the same client do as much (X-5, X-6).

The windows are Kafka's own: ten seconds' worth are free. One cycle of them takes eleven seconds; after it what a client gets
hangs on single milliseconds, in Kafka too, so the comparison with Apache Kafka ends before; `make long` goes on.
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
def test_every_throttle_time_is_that_of_the_transcription(ours: Ours, who: Who) -> None:
    seen = ours.charges(who)
    assert max(one.throttle_ms for one in seen) > 0
    assert wrong(seen, QUOTA, SAMPLES) == []


@pytest.mark.rule("X-5", "X-6")
@everybody
def test_the_bytes_charged_are_those_of_the_transcription_within_3_percent(ours: Ours, who: Who) -> None:
    seen, within_ms = ours.charges(who), int(WINDOW_SECONDS * 1000)
    charged, possible = bytes_within(seen, within_ms), bytes_within(replayed(seen, QUOTA, SAMPLES), within_ms)
    assert 0.97 * possible <= charged <= 1.03 * possible
    assert 0.95 <= charged / (QUOTA * WINDOW_SECONDS) <= 1.4


@pytest.mark.rule("X-5")
@everybody
def test_a_connection_is_muted_for_as_long_as_its_client_was_told(ours: Ours, who: Who) -> None:
    late_ms = lateness_ms(ours.kafka, [name_of(who)])
    assert min(late_ms) >= 0
    assert median(late_ms) < LATE_MS


@everybody
def test_nothing_is_lost_or_doubled(ours: Ours, who: Who) -> None:
    numbers = ours.runs[who].numbers
    assert numbers == list(range(len(numbers)))
    if who[0] == "producer":
        assert [number_in(value) for value in ours.records(who)] == numbers


@pytest.mark.rule("T-1")
@pytest.mark.parametrize("role", ["producer", "consumer"])
def test_throttle_cb_and_statistics_tell_confluent_kafka(ours: Ours, role: str) -> None:
    who = (role, "confluent-kafka")
    run = ours.runs[who]
    sent = [one.throttle_ms for one in ours.charges(who) if one.throttle_ms]
    assert len(run.told_ms) > 0
    assert run.told_ms == sent[: len(run.told_ms)]
    assert len(sent) - len(run.told_ms) <= 1  # a consumer that closes may not hear of its last fetch
    assert run.metrics["throttle-max"] in sent


@pytest.mark.rule("T-1")
@pytest.mark.parametrize("role", ["producer", "consumer"])
@pytest.mark.parametrize("library", ["kafka-python", "java"])
def test_throttle_metrics_tell_kafka_python_and_java(ours: Ours, role: str, library: str) -> None:
    """They count every answer of any API, up to the last before they looked."""
    who = (role, library)
    prefix = "" if library == "kafka-python" else {"producer": "produce-", "consumer": "fetch-"}[role]
    metrics = ours.runs[who].metrics
    sent = [seen.throttle_time_ms for seen in ours.kafka.journal.requests(client_id=name_of(who))]
    assert metrics[f"{prefix}throttle-time-max"] in {max(sent), max(sent[:-1])}
    assert metrics[f"{prefix}throttle-time-avg"] == pytest.approx(sum(sent) / len(sent), rel=0.1)


@pytest.mark.rule("X-6")
@everybody
def test_apache_kafka_lets_the_same_client_do_as_much_within_5_points(
    ours: Ours, real: dict[Who, Run], who: Who
) -> None:
    assert real[who].numbers == list(range(len(real[who].numbers)))
    seen = [ratio(runs[who], WINDOW_SECONDS) for runs in (ours.runs, real)]
    assert abs(seen[0] - seen[1]) <= POINTS, seen
