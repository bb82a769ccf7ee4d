"""The journal topic through Spark: the table of clients in windows and the alerts, against what the journal has, over restarts."""

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
    # py4j leaves its sockets to the collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings(KAFKA_PYTHON_WARNINGS),
]

ALERTS = "throttle-alerts"
WINDOWS = Windows(window_s=300, slide_s=300, late_s=10)
WINDOW_MS = WINDOWS.window_s * 1000
"""Longer than a test takes on any machine, so that it decides itself what comes into the same window."""
LIMITS = Limits(throttled_ms=1000, lag=20)
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def kafka() -> Iterator[TestCluster]:
    """At the beginning of a window."""
    with cluster(1, {"t": 1, ALERTS: 1}, journal_topic=DEFAULT_TOPIC) as c:
        c.set_quota(client_id="writer", producer_byte_rate=10_000)
        c.clock.advance(WINDOW_MS - c.clock.now_ms() % WINDOW_MS)
        yield c


def write(kafka: TestCluster, client_id: str, count: int = 1, value_bytes: int = 1000) -> None:
    """One request of many records, which is too much for whoever has a quota."""
    from kafka import KafkaProducer

    producer = KafkaProducer(
        bootstrap_servers=kafka.bootstrap, client_id=client_id, linger_ms=1000, batch_size=1 << 20, acks=1
    )
    sent = [producer.send("t", b"x" * value_bytes, partition=0) for _ in range(count)]
    producer.flush(30)
    for one in sent:
        one.get(30)
    producer.close(0)


def read(kafka: TestCluster, client_id: str, fetch_bytes: int) -> None:
    """Read once from the beginning, no more than fetch_bytes, and go."""
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(
        bootstrap_servers=kafka.bootstrap, client_id=client_id, max_partition_fetch_bytes=fetch_bytes
    )
    consumer.assign([TopicPartition("t", 0)])
    consumer.seek(TopicPartition("t", 0), 0)
    while not consumer.poll(1000):
        pass
    consumer.close()


def told(kafka: TestCluster) -> list[dict[str, Any]]:
    """What the broker has published so far."""
    kafka.clock.advance(100)
    return [json.loads(record.value or b"") for record in kafka.records(DEFAULT_TOPIC)]


def expected(kafka: TestCluster) -> dict[tuple[int, str], tuple[int, int, int, int | None, int | None]]:
    """(window, client) to throttles, throttled, longest, lag max and last: throttles by the journal itself, lags by what it published."""
    throttles: dict[tuple[int, str], list[int]] = {}
    for seen in kafka.journal.throttles():
        if seen.client_id == CLIENT_ID:
            continue  # who reads the journal is not in it
        window = seen.at_ms // WINDOW_MS * WINDOW_MS
        throttles.setdefault((window, seen.client_id or ""), []).append(seen.throttle_time_ms)
    lags: dict[tuple[int, str], list[int]] = {}
    for one in told(kafka):
        if one["kind"] in ("fetched", "behind"):
            window = one["at_ms"] // WINDOW_MS * WINDOW_MS
            lags.setdefault((window, one["client_id"]), []).append(one["high_watermark"] - one["next_offset"])
    found = {}
    for key in throttles.keys() | lags.keys():
        times, behind = throttles.get(key, []), lags.get(key, [])
        last = behind[-1] if behind else None
        found[key] = (len(times), sum(times), max(times, default=0), max(behind, default=None), last)
    return found


def found(spark: Any, folder: Path) -> dict[tuple[int, str], tuple[int, int, int, int | None, int | None]]:
    return {
        (r.window_start_ms, r.client_id): (r.throttles, r.throttled_ms, r.longest_ms, r.lag_max, r.lag_last)
        for r in table(spark, folder).collect()
    }


def alerts(kafka: TestCluster) -> list[tuple[str, int, list[str], int]]:
    """(key, window, why, throttled ms) of each, as kafka-python reads them."""
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=kafka.bootstrap, client_id="alerted")
    place = TopicPartition(ALERTS, 0)
    consumer.assign([place])
    end = consumer.end_offsets([place])[place]
    consumer.seek(place, 0)
    records: list[Any] = []
    while len(records) < end:
        records += [one for of_one in consumer.poll(1000).values() for one in of_one]
    consumer.close()
    values = [(one.key.decode(), json.loads(one.value)) for one in records]
    assert all(key == value["client_id"] and value["v"] == 1 for key, value in values)
    return [(key, value["window_start_ms"], value["why"], value["throttled_ms"]) for key, value in values]


def run(spark: Any, kafka: TestCluster, folder: Path) -> None:
    """All that is there now."""
    query = Job(spark, kafka.bootstrap, folder, windows=WINDOWS, limits=LIMITS).start()
    assert query.awaitTermination(120) and query.exception() is None


def watch(kafka: TestCluster, folder: Path) -> str:
    """The command, until it has printed an alert and was told to end; what it printed."""
    options = ["--checkpoint", str(folder), "--every-s", "1", "--window-s", str(WINDOWS.window_s), "--lag", "20"]
    command = [sys.executable, "-m", "kafkaproto.pipeline.live", kafka.bootstrap, *options]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    printed = ""
    try:
        assert process.stdout is not None
        while "ALERT" not in printed and (line := process.stdout.readline()):
            printed += line
        os.kill(process.pid, signal.SIGINT)
        rest, said = process.communicate(timeout=90)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0 and "ended" in rest, said
    return printed + rest


def test_the_table_is_what_the_journal_has_and_a_client_is_told_of_once_a_window_over_restarts(
    spark: Any, kafka: TestCluster, tmp_path: Path
) -> None:
    folder, first = tmp_path / "live", kafka.clock.now_ms() // WINDOW_MS * WINDOW_MS
    write(kafka, "free", 30)
    write(kafka, "writer", 120)  # 120 kB where 100 kB are free
    read(kafka, "reader", 40_000)
    before = expected(kafka)
    printed = watch(kafka, folder)
    assert found(spark, folder) == before
    [seen] = kafka.journal.throttles()
    throttled_ms = seen.throttle_time_ms
    assert before[(first, "writer")] == (1, throttled_ms, throttled_ms, None, None)
    assert "2 new alerts" in printed and f"{throttled_ms:,}" in printed
    told_of = [("reader", first, ["lag"], 0), ("writer", first, ["throttled"], throttled_ms)]
    assert sorted(alerts(kafka)) == told_of

    # Another process goes on with the folder; who passes a limit still in the same window was told of.
    write(kafka, "writer", 120)
    before = expected(kafka)
    published = len(told(kafka))
    own = kafka.force_throttle(1, api="ListOffsets", client_id=CLIENT_ID)
    run(spark, kafka, folder)
    kafka.cancel_throttle(own)
    assert found(spark, folder) == before and before[(first, "writer")][0] == 2
    assert own.hits and len(told(kafka)) == published  # reading the journal adds nothing to it, throttled or not
    assert sorted(alerts(kafka)) == told_of

    kafka.clock.advance(WINDOW_MS)
    write(kafka, "writer", 120)
    before = expected(kafka)
    run(spark, kafka, folder)
    assert found(spark, folder) == before
    assert [one[:3] for one in alerts(kafka) if one not in told_of] == [("writer", first + WINDOW_MS, ["throttled"])]
    told_of_it = {(one["kind"], one["topic"]) for one in told(kafka) if one.get("client_id") == CLIENT_ID}
    assert told_of_it == {("produced", ALERTS)}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["localhost"], "'localhost': allowed is HOST:PORT, for example 127.0.0.1:9092"),
        (["{kafka}", "--slide-s", "20"], "--slide-s 20: allowed is up to --window-s, which is 10"),
        (["{kafka}", "--threshold-ms", "0"], "'0': allowed is 1 or more, for example 10"),
        (["{kafka}", "--alerts-topic", "__journal"], "it is the journal; name another topic"),
        (["{kafka}", "--journal", "none"], "has no topic none; start it as kafkaproto broker --journal-topic none"),
        (["127.0.0.1:1"], "no broker answers at 127.0.0.1:1"),
        (["{kafka}", "--checkpoint", "{folder}/full"], "has files that are none of this job's"),
        (["{kafka}", "--checkpoint", "{folder}/full/file"], "cannot be used"),
        (["{kafka}", "--checkpoint", "{folder}/ahead"], "goes on at 10000: the broker was started anew"),
        (["{kafka}", "--checkpoint", "{folder}/other"], "is of a job with journal __journal, window_s 7"),
    ],
)
def test_what_must_be_given_otherwise_is_said_before_spark_starts(
    kafka: TestCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    claim(tmp_path / "ahead", DEFAULT_TOPIC, Windows())
    (tmp_path / "ahead" / "state" / "offsets").mkdir(parents=True)
    for number, offset in ((9, 5), (10, 10_000)):  # as Spark writes them
        log = f'v1\n{{}}\n{{"__journal":{{"0":{offset}}}}}'
        (tmp_path / "ahead" / "state" / "offsets" / str(number)).write_text(log)
    claim(tmp_path / "other", DEFAULT_TOPIC, Windows(7, 7, 10))
    given = [one.format(kafka=kafka.bootstrap, folder=tmp_path) for one in options]
    if "--checkpoint" not in given:
        given += ["--checkpoint", str(tmp_path / "new")]
    with pytest.raises(SystemExit) as ended:
        main(given)
    text = capsys.readouterr().err
    assert ended.value.code == 2 and said in text and len(text.splitlines()) == 1
