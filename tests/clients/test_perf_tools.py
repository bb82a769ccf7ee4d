"""kafka-producer-perf-test and kafka-consumer-perf-test of Kafka 3.9.1 under a quota: the rates they report are those of the arithmetic.

What they need to begin is taken from the journal too, so that their clock is compared with ours and not with the speed of Java.
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
SAMPLES = 3  # quota.window.num: two seconds' worth are free, so that a few seconds have every phase of a quota
RECORDS, RECORD_BYTES = 5000, 1000
BATCH_BYTES = 50_000  # 0.05 seconds' worth a request
CLIENT = "perf"
CLOSE = 1.05
START = 0.5
"""How much of the time to its first request a tool may have counted: its clock runs while Java still loads what connects."""
LONGEST_WINDOW_MS = 1_000_000


@pytest.fixture
def kafka() -> Iterator[TestCluster]:
    with cluster(1, {"t": 1}, {"quota.window.num": SAMPLES}) as running:
        yield running


@pytest.mark.rule("Q-11", "X-6")
def test_what_the_producer_perf_test_reports_is_what_the_arithmetic_says(kafka: TestCluster) -> None:
    kafka.set_quota(client_id=CLIENT, producer_byte_rate=QUOTA)
    tool = "org.apache.kafka.tools.ProducerPerformance"
    what = ("--topic", "t", "--num-records", str(RECORDS), "--record-size", str(RECORD_BYTES), "--throughput", "-1")
    settings = (f"bootstrap.servers={kafka.bootstrap}", f"client.id={CLIENT}", f"batch.size={BATCH_BYTES}")
    started_ms = kafka.clock.now_ms()
    said = run_tool(tool, *what, "--print-metrics", "--producer-props", *settings)

    seen = charges(kafka, PRODUCE, [CLIENT])
    assert wrong(seen, QUOTA, SAMPLES) == []
    sent = replayed(seen, QUOTA, SAMPLES)
    assert bytes_within(sent, LONGEST_WINDOW_MS) > RECORDS * RECORD_BYTES
    begun_ms = kafka.journal.requests(client_id=CLIENT)[0].at_ms
    wanted_s = (seen[0].at_ms - begun_ms + sent[-1].at_ms) / 1000
    found = re.findall(r"^(\d+) records sent, ([\d.]+) records/sec", said, re.MULTILINE)[-1]
    assert int(found[0]) == RECORDS
    start_s = START * (begun_ms - started_ms) / 1000
    assert wanted_s * 0.99 <= RECORDS / float(found[1]) <= wanted_s * CLOSE + start_s

    told = dict(re.findall(r"^producer-metrics:(produce-throttle-time-\w+):\S+\s*: ([\d.]+)", said, re.MULTILINE))
    assert float(told["produce-throttle-time-max"]) == max(one.throttle_ms for one in seen) > 0
    assert min(lateness_ms(kafka, [CLIENT])) >= 0


@pytest.mark.rule("Q-12", "X-6")
def test_what_the_consumer_perf_test_reports_is_what_the_arithmetic_says(kafka: TestCluster, tmp_path: Path) -> None:
    for _ in range(RECORDS * RECORD_BYTES // BATCH_BYTES):
        kafka.produce("t", [b"x" * RECORD_BYTES] * (BATCH_BYTES // RECORD_BYTES))
    kafka.set_quota(client_id=CLIENT, consumer_byte_rate=QUOTA)
    settings = tmp_path / "consumer.properties"
    settings.write_text(f"client.id={CLIENT}\nmax.partition.fetch.bytes={BATCH_BYTES}\n")
    tool = "org.apache.kafka.tools.ConsumerPerformance"
    what = ("--topic", "t", "--messages", str(RECORDS), "--consumer.config", str(settings))
    started_ms = kafka.clock.now_ms()
    said = run_tool(tool, "--bootstrap-server", kafka.bootstrap, *what, "--print-metrics")

    seen = charges(kafka, FETCH, [CLIENT])
    assert wrong(seen, QUOTA, SAMPLES) == []
    last_ms = max(one.at_ms for one in replayed(seen, QUOTA, SAMPLES) if one.value > BATCH_BYTES)
    names, values = (line.split(", ") for line in said.splitlines()[:2])
    report = dict(zip(names, values, strict=True))
    assert int(report["data.consumed.in.nMsg"]) == RECORDS
    wanted_s = last_ms / 1000
    start_s = START * (kafka.journal.requests(client_id=CLIENT)[0].at_ms - started_ms) / 1000
    assert wanted_s * 0.99 <= int(report["fetch.time.ms"]) / 1000 <= wanted_s * CLOSE + start_s

    told = dict(re.findall(r"(fetch-throttle-time-\w+):\S+\s*: ([\d.]+)", said))
    assert float(told["fetch-throttle-time-max"]) == max(one.throttle_ms for one in seen) > 0
    assert min(lateness_ms(kafka, [CLIENT])) >= 0
