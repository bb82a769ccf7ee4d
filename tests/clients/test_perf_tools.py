"""kafka-producer-perf-test and kafka-consumer-perf-test of Kafka 3.9.1 report the rates that the quota arithmetic predicts.

Their start times are taken from the journal, so that the result does not depend on how fast Java starts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkaproto.testing import TestCluster, cluster
from tests.support.clients.kafka_tools import run_tool
from tests.support.clients.replay import FETCH, PRODUCE, bytes_within, charges, lateness_ms, replayed, wrong

pytestmark = [pytest.mark.clients, pytest.mark.java, pytest.mark.timeout(120)]
QUOTA = 1_000_000
SAMPLES = 3  # quota.window.num: two seconds' worth are unthrottled, so that a few seconds have every phase of a quota
RECORDS, RECORD_BYTES = 5000, 1000
BATCH_BYTES = 50_000  # 0.05 seconds' worth a request
CLIENT = "perf"
CLOSE = 1.05
START = 0.5
"""The share of the time before its first request that a tool may count: its clock runs while Java still loads classes."""
LONGEST_WINDOW_MS = 1_000_000


@pytest.fixture
def kafka() -> Iterator[TestCluster]:
    with cluster(1, {"t": 1}, {"quota.window.num": SAMPLES}) as running:
        yield running


@pytest.mark.rule("Q-11", "X-6")
def test_producer_perf_test_tool_reports_the_rate_that_its_quota_allows(kafka: TestCluster) -> None:
    kafka.set_quota(client_id=CLIENT, producer_byte_rate=QUOTA)
    tool = "org.apache.kafka.tools.ProducerPerformance"
    tool_options = (
        "--topic",
        "t",
        "--num-records",
        str(RECORDS),
        "--record-size",
        str(RECORD_BYTES),
        "--throughput",
        "-1",
    )
    settings = (f"bootstrap.servers={kafka.bootstrap}", f"client.id={CLIENT}", f"batch.size={BATCH_BYTES}")
    started_ms = kafka.clock.now_ms()
    output = run_tool(tool, *tool_options, "--print-metrics", "--producer-props", *settings)

    charged = charges(kafka, PRODUCE, [CLIENT])
    assert wrong(charged, QUOTA, SAMPLES) == []
    sent = replayed(charged, QUOTA, SAMPLES)
    assert bytes_within(sent, LONGEST_WINDOW_MS) > RECORDS * RECORD_BYTES
    first_request_ms = kafka.journal.requests(client_id=CLIENT)[0].at_ms
    expected_s = (charged[0].at_ms - first_request_ms + sent[-1].at_ms) / 1000
    totals = re.findall(r"^(\d+) records sent, ([\d.]+) records/sec", output, re.MULTILINE)[-1]
    assert int(totals[0]) == RECORDS
    start_s = START * (first_request_ms - started_ms) / 1000
    assert expected_s * 0.99 <= RECORDS / float(totals[1]) <= expected_s * CLOSE + start_s

    metrics = dict(re.findall(r"^producer-metrics:(produce-throttle-time-\w+):\S+\s*: ([\d.]+)", output, re.MULTILINE))
    assert float(metrics["produce-throttle-time-max"]) == max(charge.throttle_ms for charge in charged) > 0
    assert min(lateness_ms(kafka, [CLIENT])) >= 0


@pytest.mark.rule("Q-12", "X-6")
def test_kafka_consumer_perf_test_prints_the_fetch_time_expected_from_the_byte_quota(
    kafka: TestCluster, tmp_path: Path
) -> None:
    for _ in range(RECORDS * RECORD_BYTES // BATCH_BYTES):
        kafka.produce("t", [b"x" * RECORD_BYTES] * (BATCH_BYTES // RECORD_BYTES))
    kafka.set_quota(client_id=CLIENT, consumer_byte_rate=QUOTA)
    settings = tmp_path / "consumer.properties"
    settings.write_text(f"client.id={CLIENT}\nmax.partition.fetch.bytes={BATCH_BYTES}\n")
    tool = "org.apache.kafka.tools.ConsumerPerformance"
    tool_options = ("--topic", "t", "--messages", str(RECORDS), "--consumer.config", str(settings))
    started_ms = kafka.clock.now_ms()
    output = run_tool(tool, "--bootstrap-server", kafka.bootstrap, *tool_options, "--print-metrics")

    charged = charges(kafka, FETCH, [CLIENT])
    assert wrong(charged, QUOTA, SAMPLES) == []
    last_ms = max(charge.at_ms for charge in replayed(charged, QUOTA, SAMPLES) if charge.value > BATCH_BYTES)
    names, values = (line.split(", ") for line in output.splitlines()[:2])
    report = dict(zip(names, values, strict=True))
    assert int(report["data.consumed.in.nMsg"]) == RECORDS
    expected_s = last_ms / 1000
    start_s = START * (kafka.journal.requests(client_id=CLIENT)[0].at_ms - started_ms) / 1000
    assert expected_s * 0.99 <= int(report["fetch.time.ms"]) / 1000 <= expected_s * CLOSE + start_s

    metrics = dict(re.findall(r"(fetch-throttle-time-\w+):\S+\s*: ([\d.]+)", output))
    assert float(metrics["fetch-throttle-time-max"]) == max(charge.throttle_ms for charge in charged) > 0
    assert min(lateness_ms(kafka, [CLIENT])) >= 0
