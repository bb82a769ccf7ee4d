"""The journal topic in Spark: the windowed table of clients and the alerts, compared with the journal over restarts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkaproto.broker.observe.journal_topic import DEFAULT_TOPIC
from kafkaproto.pipeline.live.__main__ import main
from kafkaproto.pipeline.live.job import CLIENT_ID, Job, Limits, Windows, claim, table
from kafkaproto.testing import TestCluster, cluster
from tests.support.clients import KAFKA_PYTHON_WARNINGS

pytestmark = [
    pytest.mark.spark,
    pytest.mark.xdist_group("spark"),
    pytest.mark.timeout(180),
    # py4j leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings(KAFKA_PYTHON_WARNINGS),
]

ALERTS = "throttle-alerts"
WINDOWS = Windows(window_s=300, slide_s=300, late_s=10)
WINDOW_MS = WINDOWS.window_s * 1000
"""Longer than a test takes on any machine, so that the test controls which records are in one window."""
LIMITS = Limits(throttled_ms=1000, lag=20)
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def kafka() -> Iterator[TestCluster]:
    """Start a broker at the beginning of a window."""
    with cluster(1, {"t": 1, ALERTS: 1}, journal_topic=DEFAULT_TOPIC) as c:
        c.set_quota(client_id="writer", producer_byte_rate=10_000)
        c.clock.advance(WINDOW_MS - c.clock.now_ms() % WINDOW_MS)
        yield c


def write(kafka: TestCluster, client_id: str, count: int = 1, value_bytes: int = 1000) -> None:
    """Send one produce request that exceeds the quota of a client that has one."""
    from kafka import KafkaProducer

    producer = KafkaProducer(
        bootstrap_servers=kafka.bootstrap, client_id=client_id, linger_ms=1000, batch_size=1 << 20, acks=1
    )
    sent = [producer.send("t", b"x" * value_bytes, partition=0) for _ in range(count)]
    producer.flush(30)
    for entry in sent:
        entry.get(30)
    producer.close(0)


def read(kafka: TestCluster, client_id: str, fetch_bytes: int) -> None:
    """Fetch once from the beginning, at most `fetch_bytes`, and disconnect."""
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(
        bootstrap_servers=kafka.bootstrap, client_id=client_id, max_partition_fetch_bytes=fetch_bytes
    )
    consumer.assign([TopicPartition("t", 0)])
    consumer.seek(TopicPartition("t", 0), 0)
    while not consumer.poll(1000):
        pass
    consumer.close()


def published(kafka: TestCluster) -> list[dict[str, Any]]:
    """Return the journal records published so far."""
    kafka.clock.advance(100)
    return [json.loads(record.value or b"") for record in kafka.records(DEFAULT_TOPIC)]


def expected(kafka: TestCluster) -> dict[tuple[int, str], tuple[int, int, int, int | None, int | None]]:
    """Return (window, client) to throttles, throttled ms, longest, maximum lag and last lag.

    The throttles are from the journal itself, the lags from its published records.
    """
    throttles: dict[tuple[int, str], list[int]] = {}
    for throttle in kafka.journal.throttles():
        if throttle.client_id == CLIENT_ID:
            continue  # readers of the journal are not in it
        window = throttle.at_ms // WINDOW_MS * WINDOW_MS
        throttles.setdefault((window, throttle.client_id or ""), []).append(throttle.throttle_time_ms)
    lags: dict[tuple[int, str], list[int]] = {}
    for entry in published(kafka):
        if entry["kind"] in ("fetched", "behind"):
            window = entry["at_ms"] // WINDOW_MS * WINDOW_MS
            lags.setdefault((window, entry["client_id"]), []).append(entry["high_watermark"] - entry["next_offset"])
    expected_rows = {}
    for key in throttles.keys() | lags.keys():
        times, behind = throttles.get(key, []), lags.get(key, [])
        last = behind[-1] if behind else None
        expected_rows[key] = (len(times), sum(times), max(times, default=0), max(behind, default=None), last)
    return expected_rows


def job_rows(spark: Any, folder: Path) -> dict[tuple[int, str], tuple[int, int, int, int | None, int | None]]:
    return {
        (r.window_start_ms, r.client_id): (r.throttles, r.throttled_ms, r.longest_ms, r.lag_max, r.lag_last)
        for r in table(spark, folder).collect()
    }


def alerts(kafka: TestCluster) -> list[tuple[str, int, list[str], int]]:
    """Return (key, window, reasons, throttled ms) of each alert, as kafka-python reads them."""
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=kafka.bootstrap, client_id="alerted")
    place = TopicPartition(ALERTS, 0)
    consumer.assign([place])
    end = consumer.end_offsets([place])[place]
    consumer.seek(place, 0)
    records: list[Any] = []
    while len(records) < end:
        records += [record for partition_records in consumer.poll(1000).values() for record in partition_records]
    consumer.close()
    values = [(record.key.decode(), json.loads(record.value)) for record in records]
    assert all(key == value["client_id"] and value["v"] == 1 for key, value in values)
    return [(key, value["window_start_ms"], value["why"], value["throttled_ms"]) for key, value in values]


def run(spark: Any, kafka: TestCluster, folder: Path) -> None:
    """Process everything published so far."""
    query = Job(spark, kafka.bootstrap, folder, windows=WINDOWS, limits=LIMITS).start()
    assert query.awaitTermination(120) and query.exception() is None


def watch(kafka: TestCluster, folder: Path) -> str:
    """Run the command until it has printed an alert, stop it, and return its output."""
    options = ["--checkpoint", str(folder), "--every-s", "1", "--window-s", str(WINDOWS.window_s), "--lag", "20"]
    command = [sys.executable, "-m", "kafkaproto.pipeline.live", kafka.bootstrap, *options]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    printed = ""
    try:
        assert process.stdout is not None
        while "ALERT" not in printed and (line := process.stdout.readline()):
            printed += line
        os.kill(process.pid, signal.SIGINT)
        rest, errors = process.communicate(timeout=90)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0 and "stopped" in rest, errors
    return printed + rest


def test_live_spark_job_alerts_once_per_window_about_a_throttled_or_lagging_client(
    spark: Any, kafka: TestCluster, tmp_path: Path
) -> None:
    folder, first = tmp_path / "live", kafka.clock.now_ms() // WINDOW_MS * WINDOW_MS
    write(kafka, "free", 30)
    write(kafka, "writer", 120)  # 120 kB with 100 kB unthrottled
    read(kafka, "reader", 40_000)
    before = expected(kafka)
    printed = watch(kafka, folder)
    assert job_rows(spark, folder) == before
    [throttle] = kafka.journal.throttles()
    throttled_ms = throttle.throttle_time_ms
    assert before[(first, "writer")] == (1, throttled_ms, throttled_ms, None, None)
    assert "2 new alerts" in printed and f"{throttled_ms:,}" in printed
    reported_alerts = [("reader", first, ["lag"], 0), ("writer", first, ["throttled"], throttled_ms)]
    assert sorted(alerts(kafka)) == reported_alerts

    # Another process continues with the folder; clients above a limit in the same window were reported before.
    write(kafka, "writer", 120)
    before = expected(kafka)
    published_before = len(published(kafka))
    own = kafka.force_throttle(1, api="ListOffsets", client_id=CLIENT_ID)
    run(spark, kafka, folder)
    kafka.cancel_throttle(own)
    assert job_rows(spark, folder) == before and before[(first, "writer")][0] == 2
    # Reading the journal adds no entries to it, throttled or not.
    assert own.hits and len(published(kafka)) == published_before
    assert sorted(alerts(kafka)) == reported_alerts

    kafka.clock.advance(WINDOW_MS)
    write(kafka, "writer", 120)
    before = expected(kafka)
    run(spark, kafka, folder)
    assert job_rows(spark, folder) == before
    assert [alert[:3] for alert in alerts(kafka) if alert not in reported_alerts] == [
        ("writer", first + WINDOW_MS, ["throttled"])
    ]
    alert_records = {
        (alert["kind"], alert["topic"]) for alert in published(kafka) if alert.get("client_id") == CLIENT_ID
    }
    assert alert_records == {("produced", ALERTS)}


@pytest.mark.parametrize(
    ("options", "error_text"),
    [
        (["localhost"], "must be HOST:PORT, for example 127.0.0.1:9092 (got 'localhost')"),
        (["{kafka}", "--slide-s", "20"], "--slide-s must be at most --window-s=10 (got 20)"),
        (["{kafka}", "--threshold-ms", "0"], "must be a whole number of at least 1 (got '0')"),
        (["{kafka}", "--alerts-topic", "__journal"], "must not be the journal topic (got __journal)"),
        (["{kafka}", "--journal", "none"], "has no topic none; start it as kafkaproto broker --journal-topic none"),
        (["127.0.0.1:1"], "no broker responds at 127.0.0.1:1"),
        (["{kafka}", "--checkpoint", "{folder}/full"], "contains files that do not belong to a job"),
        (["{kafka}", "--checkpoint", "{folder}/full/file"], "cannot be used"),
        (
            ["{kafka}", "--checkpoint", "{folder}/ahead"],
            "continues at 10000: the broker was restarted without its data",
        ),
        (["{kafka}", "--checkpoint", "{folder}/other"], "belongs to a job with journal __journal, window_s 7"),
    ],
)
def test_live_spark_job_with_invalid_options_prints_an_error_and_exits_with_status_2(
    kafka: TestCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], error_text: str
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    claim(tmp_path / "ahead", DEFAULT_TOPIC, Windows())
    (tmp_path / "ahead" / "state" / "offsets").mkdir(parents=True)
    for number, offset in ((9, 5), (10, 10_000)):  # as Spark writes them
        log = f'v1\n{{}}\n{{"__journal":{{"0":{offset}}}}}'
        (tmp_path / "ahead" / "state" / "offsets" / str(number)).write_text(log)
    claim(tmp_path / "other", DEFAULT_TOPIC, Windows(7, 7, 10))
    arguments = [option.format(kafka=kafka.bootstrap, folder=tmp_path) for option in options]
    if "--checkpoint" not in arguments:
        arguments += ["--checkpoint", str(tmp_path / "new")]
    with pytest.raises(SystemExit) as exit_info:
        main(arguments)
    text = capsys.readouterr().err
    assert exit_info.value.code == 2 and error_text in text and len(text.splitlines()) == 1
