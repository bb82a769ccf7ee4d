"""The audit, in Spark: what real clients did against our broker breaks no rule and exercises each; a fault that is planted breaks its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from broker.quota.windows import throttle_ms
from broker.testing import TestCluster, cluster
from kafkaproto.trace.format import files_of
from pipeline.trace import tables as job
from pipeline.trace.audit.__main__ import FAILED, RULES, UNREADABLE, WARNED, as_json, audit, main, status, text
from pipeline.trace.audit.rule import BROKEN, ERROR, HOLDS, NOT_EXERCISED, WARNING, Outcome, Rule, Tables
from pipeline.trace.schema import TABLES, ddl
from tests.broker.wire import batch, fetch, metadata, produce
from tests.clients import KAFKA_PYTHON_WARNINGS
from tests.conformance.client import Connection
from tests.pipeline.trace import broken
from tests.pipeline.trace.recorded import traffic, write
from tests.pipeline.trace.test_tables import rows

pytestmark = [
    pytest.mark.spark,
    pytest.mark.clients,
    pytest.mark.timeout(120),
    pytest.mark.filterwarnings(KAFKA_PYTHON_WARNINGS),
    # py4j leaves its sockets to the collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]

ROOT = Path(__file__).resolve().parents[3]
RATE = 60_000
CONFIG = {
    "quota.window.num": "2",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "0.broker.rack": "a",
    "1.broker.rack": "b",
    "2.broker.rack": "c",
}
WITHOUT_TRANSACTIONS = "11 aborted"
"""The one rule that a broker without transactions exercises with no client: `broken.reads_transactions` does."""
Rows = dict[str, list[dict[str, Any]]]


def ask(connection: Connection, request: Any, version: int) -> Any:
    connection.send_bytes(connection.frame(request, version))
    found = connection.take(20)
    assert found is not None
    return connection.decode(*found, 0.0).message


def work(c: TestCluster) -> None:
    """Three clients that people use, on three brokers in three racks: quotas, sessions, transactions' isolation, idempotence, racks, a broker
    that goes and comes back, a topic that is made again under its name."""
    c.set_quota(client_id="p", producer_byte_rate=RATE)
    c.set_quota(client_id="r", consumer_byte_rate=RATE)
    _kafka_python(c)
    _confluent(c)
    _raw(c)
    c.broker(2).stop()
    c.broker(2).start()
    c.delete_topic("t")
    c.create_topic("t", 2, 3)
    _confluent(c)


def _kafka_python(c: TestCluster) -> None:
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition

    producer = KafkaProducer(bootstrap_servers=c.bootstrap, client_id="p", batch_size=4000)
    for number in range(240):
        producer.send("t", b"x" * 500, partition=number % 2)
    producer.flush()
    producer.close()
    consumer = KafkaConsumer(
        "t",
        bootstrap_servers=c.bootstrap,
        client_id="c",
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=20_000,
        isolation_level="read_committed",
    )
    seen = 0
    while seen < 240:
        seen += sum(map(len, consumer.poll(1000).values()))
    consumer.offsets_for_times({TopicPartition("t", 0): 1})
    consumer.end_offsets([TopicPartition("t", 0), TopicPartition("t", 1)])
    consumer.close()


def _confluent(c: TestCluster) -> None:
    from confluent_kafka import Consumer, Producer, TopicPartition

    producer = Producer(
        {"bootstrap.servers": c.bootstrap, "client.id": "i", "enable.idempotence": True, "linger.ms": 0}
    )
    for _ in range(20):
        producer.produce("t", b"y" * 200, partition=0)
        producer.flush()
    for rack in "abc":
        config = {"bootstrap.servers": c.bootstrap, "group.id": f"of {rack}", "client.id": rack, "client.rack": rack}
        consumer = Consumer({**config, "auto.offset.reset": "earliest", "enable.auto.commit": False})
        consumer.assign([TopicPartition("t", 0, 0)])
        seen = 0
        while seen < 20:
            message = consumer.poll(1.0)
            seen += message is not None and message.error() is None
        consumer.close()


def _raw(c: TestCluster) -> None:
    leader = {index: c.partition("t", index).leader for index in (0, 1)}

    def connect(client_id: str, index: int = 0) -> Connection:
        host, port = c.bootstrap_servers[leader[index]].split(":")
        return Connection(host, int(port), client_id)

    raw = connect("r")
    for _ in range(3):
        ask(raw, fetch(("t", 0, 0), max_bytes=RATE), 11)
    raw.close()
    raw = connect("o")
    for offset in (0, 1_000_000, 0):
        ask(raw, fetch(("t", 0, offset)), 11)
    end = ask(raw, fetch(("t", 0, 0)), 11).responses[0].partitions[0].high_watermark
    ask(raw, fetch(("t", 0, end), max_wait_ms=50, min_bytes=1), 11)
    raw.send_bytes(raw.frame(produce("t", batch(b"x", b"y"), acks=0), 9))
    ask(raw, metadata(["t"]), 9)
    raw.close()


@pytest.fixture(scope="module")
def out(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of that, made by Spark; beside them its trace, whose end is torn, and the tables that were made without Spark."""
    folder = tmp_path_factory.mktemp("run")
    trace, made = folder / "trace", folder / "out"
    topics = {"t": {"partitions": 2, "replication_factor": 3}}
    with cluster(3, topics, CONFIG, trace=trace) as c:
        work(c)
    [file] = files_of(trace)
    with file.open("ab") as end:
        end.write(bytes(3))
    counts, [told] = job.build(trace, made, partial(job.with_spark, spark))
    assert told.torn and all(counts[run][table] for run in counts for table in TABLES)
    job.build(trace, made.parent / "other", job.without_spark)
    return made


def test_spark_makes_the_tables_that_are_made_without_it(out: Path) -> None:
    for table in TABLES:
        assert rows(out, table) == rows(out.parent / "other", table)


def test_run_again_spark_reads_only_what_is_new_and_tells_what_is_bad(spark: Any, tmp_path: Path) -> None:
    trace, made = tmp_path / "trace", tmp_path / "out"
    with_spark = partial(job.with_spark, spark)
    write(trace, traffic(), "a")
    assert list(job.build(trace, made, with_spark)[0]) == ["a"]
    torn = write(trace, traffic(), "b")
    torn.write_bytes(torn.read_bytes()[:-1])
    counts, [told] = job.build(trace, made, with_spark)
    assert list(counts) == ["b"] and told.torn and str(torn) in told.text
    assert {row.run: row.n for row in job.read(spark, made, "requests").groupBy("run").agg({"*": "count"}).toDF("run", "n").collect()} == {
        "a": 8,
        "b": 7,
    }  # fmt: skip
    for table, columns in TABLES.items():
        found = job.read(spark, made, table)
        assert [(f.name, f.dataType.simpleString()) for f in found.schema] == [(c.name, c.type) for c in columns]
    assert job.read(spark, tmp_path / "none", "batches").collect() == []


# ---- planted faults ----------------------------------------------------------------------------------------------------------


def row(found: list[dict[str, Any]], wanted: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """The first that is as wanted; `found` is in order of seq."""
    return next(one for one in found if wanted(one))


def in_conversation(tables: Rows, wanted: Callable[[dict[str, Any], dict[str, Any]], Any]) -> list[dict[str, Any]]:
    """A request and the next of its connection."""
    for one in tables["requests"]:
        following = next((r for r in tables["requests"] if r["conn"] == one["conn"] and r["seq"] > one["seq"]), None)
        if following is not None and wanted(one, following):
            return [one, following]
    raise AssertionError("no such pair of requests")


def answered_while_muted(tables: Rows) -> int:
    one, following = in_conversation(tables, lambda one, _: one["muted_until_ms"])
    following["handled_ms"] = one["muted_until_ms"] - 1
    return following["seq"]


def told_another_throttle(tables: Rows) -> int:
    one = row(tables["requests"], lambda r: r["throttle_quota"] == "Produce")
    one["throttle_ms"] += 1
    return one["seq"]


def throttled_with_records(tables: Rows) -> int:
    one = row(tables["requests"], lambda r: r["api"] == "Fetch" and r["decided_ms"] > 0)
    one["records_bytes"] = 100
    return one["seq"]


def answered_out_of_turn(tables: Rows) -> int:
    one, following = in_conversation(tables, lambda a, b: a["api"] == b["api"] == "Produce")
    one["ready_ns"], following["ready_ns"] = following["ready_ns"], one["ready_ns"]
    return following["seq"]


def somebody_elses_answer(tables: Rows) -> int:
    one = row(tables["requests"], lambda r: r["api"] == "Metadata")
    one["trouble"] = "the answer's correlation id is 99"
    return one["seq"]


def unknown_version(tables: Rows) -> int:
    one = row(tables["requests"], lambda r: r["api"] == "Metadata")
    one["api_version"] = 99
    return one["seq"]


def answered_late(tables: Rows) -> int:
    one = row(tables["requests"], lambda r: r["api"] == "Fetch")
    one["handled_ns"] -= (one["max_wait_ms"] + 1001) * 1_000_000
    return one["seq"]


def answered_without_acks(tables: Rows) -> int:
    one = row(tables["requests"], lambda r: r["acks"] == 0)
    one["answered"] = True
    return one["seq"]


def over_the_limit(tables: Rows) -> int:
    one = row(tables["partitions"], lambda r: r["limit_bytes"] and r["batches"] > 1)
    one["limit_bytes"] = one["bytes"] - 1
    return one["seq"]


def overlapping(tables: Rows) -> int:
    one = row(tables["batches"], lambda r: r["api"] == "Fetch" and r["place"] == 1)
    one["base_offset"] -= 1
    return one["seq"]


def with_a_gap(tables: Rows) -> int:
    one = row(tables["batches"], lambda r: r["api"] == "Fetch" and r["place"] == 1 and r["count"] > 1)
    one["base_offset"] += 1
    return one["seq"]


def with_other_bytes(tables: Rows) -> int:
    one = row(tables["batches"], lambda r: r["api"] == "Fetch")
    one["crc"] ^= 1
    return one["seq"]


def fallen_watermark(tables: Rows) -> int:
    found = [r for r in tables["partitions"] if r["api"] == "Fetch" and r["error"] == 0 and r["partition"] == 1]
    found[1]["high_watermark"] = found[1]["last_stable_offset"] = found[0]["high_watermark"] - 1
    return found[1]["seq"]


def no_progress(tables: Rows) -> int:
    one = row(tables["partitions"], lambda r: r["asked_offset"] is not None and r["next_offset"])
    one["asked_offset"] = one["next_offset"]
    return one["seq"]


def out_of_a_range_that_it_is_in(tables: Rows) -> int:
    one = row(tables["partitions"], lambda r: r["api"] == "Fetch" and r["error"] == 1)
    one["asked_offset"] = 5
    return one["seq"]


def fallen_epoch(tables: Rows) -> int:
    one = row(tables["batches"], lambda r: r["api"] == "Fetch" and r["place"] == 1)
    one["epoch"] = -1 + row(tables["batches"], lambda r: r["seq"] == one["seq"])["epoch"]
    one["epoch"] = max(one["epoch"], 0)
    row(tables["batches"], lambda r: r["seq"] == one["seq"] and r["partition"] == one["partition"])["epoch"] += 1
    return one["seq"]


def id_of_two_topics(tables: Rows) -> int:
    named = [one for one in tables["events"] if one["kind"] == "named"]
    facts = json.loads(named[-1]["facts"])
    named[-1]["facts"] = json.dumps(facts | {"topic": "other"})
    return named[-1]["seq"]


def lost_behind_acks(tables: Rows) -> int:
    """A fetch that came before is told no less than one that came later: only what was acknowledged in between tells that it is wrong."""
    one = row(tables["partitions"], lambda r: r["api"] == "Produce" and r["acks"] == -1 and r["error"] == 0)
    one["next_offset"] += 1_000_000
    return row(
        tables["partitions"],
        lambda r: (
            (r["api"], r["error"], r["broker"], r["topic"], r["partition"])
            == ("Fetch", 0, one["broker"], one["topic"], one["partition"])
            and r["begun_ns"] > one["ready_ns"]
        ),
    )["seq"]


class Patched(NamedTuple):
    """must: the rules that break at the row that was patched. may: those that may break beside them, wherever."""

    must: str
    may: frozenset[str] = frozenset()


FAULTS: dict[Callable[[Rows], int], Patched] = {
    answered_while_muted: Patched("3"),
    told_another_throttle: Patched("4"),
    throttled_with_records: Patched("5"),
    answered_out_of_turn: Patched("6"),
    somebody_elses_answer: Patched("6"),
    unknown_version: Patched("7"),
    answered_late: Patched("13"),
    answered_without_acks: Patched("20"),
    over_the_limit: Patched("2"),
    overlapping: Patched("8"),
    with_a_gap: Patched("8 gap"),
    with_other_bytes: Patched("9"),
    fallen_watermark: Patched("10"),
    fallen_epoch: Patched("10 epoch"),
    no_progress: Patched("12"),
    out_of_a_range_that_it_is_in: Patched("18"),
    id_of_two_topics: Patched("19"),
    lost_behind_acks: Patched("20 HW"),
}


def test_a_planted_fault_breaks_its_rule_first_at_its_row_and_no_other(spark: Any, out: Path) -> None:
    """Each fault in a run of its own, one audit for all."""
    clean: Rows = {table: rows(out.parent / "other", table) for table in TABLES}
    planted: Rows = {table: [] for table in TABLES}
    expected = {}
    for fault, patched in FAULTS.items():
        copy = deepcopy(clean)
        expected[fault.__name__, patched.must] = fault(copy)
        for table, found in copy.items():
            planted[table] += [one | {"run": fault.__name__} for one in found]
    frames = {
        table: spark.createDataFrame([tuple(one[c.name] for c in TABLES[table]) for one in found], ddl(table)).cache()
        for table, found in planted.items()
    }
    tables = Tables(frames["requests"], frames["partitions"], frames["batches"], frames["events"])
    first: dict[tuple[str, str], int] = {}
    for rule in RULES:
        checked = rule.check(tables)
        for one in checked.where("broken").orderBy(checked.excess.desc_nulls_last(), "run", "seq").collect():
            first.setdefault((one.run, rule.number), one.seq)
    by_name = {fault.__name__: patched for fault, patched in FAULTS.items()}
    beside = {(run, rule) for run, rule in first if rule != by_name[run].must}
    assert {key: seq for key, seq in first.items() if key not in beside} == expected
    assert all(rule in by_name[run].may for run, rule in beside), beside
    outcomes = audit(tables, [rule for rule in RULES if rule.number in ("3", "6")])
    assert [(one.broken, len(one.sample)) for one in outcomes] == [(1, 1), (2, 2)] and status(outcomes) == FAILED
    said = text(outcomes)
    seq = outcomes[0].sample[0]["seq"]
    assert "rule 3 (error): no request of a connection is handled while it is muted; the worst rows:" in said
    assert f"run answered_while_muted, seq {seq}" in said and outcomes[0].worst == 1.0
    assert f"kafkaproto trace cut TRACE --seq {seq} --out rule-3.pcap" in said
    told = json.loads(json.dumps(as_json(outcomes)))["rules"][0]
    assert told["sample"] == outcomes[0].sample
    assert told["query"]["name"] == "pipeline.trace.audit.throttling.muted"
    assert told["query"]["source"].startswith("def muted(tables: Tables) -> DataFrame:")


def test_every_rule_has_a_fault_that_breaks_it() -> None:
    brokers = set().union(*(one.must for one in broken.FAULTS.values()))
    assert brokers | {one.must for one in FAULTS.values()} == {rule.number for rule in RULES}
    assert len(broken.FAULTS) + len(FAULTS) >= 20


# ---- arithmetic, verdicts, the command ---------------------------------------------------------------------------------------


def test_the_audits_arithmetic_is_that_of_the_broker_to_the_millisecond(spark: Any) -> None:
    cases = [
        (rate / 7, bound / 3, window)
        for rate in (900.5, 10_500, 1e9)
        for bound in (1, 333.3, 30_000)
        for window in (1, 999, 10_500)
    ]
    cases += [(15.0, 10.0, 1001), (15.0, 10.0, 1003), (10.001, 10.0, 5000)]  # halves
    requests, at = [], 0
    for rate, bound, window in cases:
        for quota in ("Produce", "Request"):
            wait = (
                throttle_ms(rate, bound, window) if quota == "Produce" else min(throttle_ms(rate, bound, window), 1000)
            )
            if 0 < wait < 2**31:
                at += 1
                told = dict.fromkeys(c.name for c in TABLES["requests"]) | {"run": "r", "seq": at, "held": False}
                told |= {"decided_ms": wait, "throttle_ms": wait, "throttle_quota": quota}
                told |= {"quota_rate": rate, "quota_bound": bound, "quota_window_ms": window}
                requests.append(tuple(told.values()))
    empty = {table: spark.createDataFrame([], ddl(table)) for table in TABLES}
    frame = spark.createDataFrame(requests, ddl("requests"))
    tables = Tables(frame, empty["partitions"], empty["batches"], empty["events"])
    [one] = audit(tables, [rule for rule in RULES if rule.number == "4"])
    assert (one.checked, one.broken) == (len(requests), 0), one.sample
    assert len(requests) > 20


def test_what_nothing_exercised_does_not_hold(spark: Any, tmp_path: Path) -> None:
    outcomes = audit(Tables.of(spark, tmp_path), RULES[:3])
    assert {one.verdict for one in outcomes} == {NOT_EXERCISED} and status(outcomes) == 0
    assert "0 hold" in text(outcomes).splitlines()[0]


def test_the_status_is_that_of_the_worst_severity() -> None:
    def broken(severity: str, count: int) -> Outcome:
        return Outcome(Rule("1", "", severity, lambda tables: tables.requests), 5, count, None, [])

    assert status([broken(ERROR, 0), broken(WARNING, 0)]) == 0
    assert status([broken(ERROR, 0), broken(WARNING, 1)]) == WARNED
    assert status([broken(ERROR, 1), broken(WARNING, 1)]) == FAILED
    assert broken(ERROR, 1).verdict == BROKEN and broken(ERROR, 0).verdict == HOLDS


def test_where_there_are_no_tables_nothing_is_audited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in (tmp_path / "nowhere", tmp_path):
        assert main([str(folder)]) == UNREADABLE
        said = capsys.readouterr()
        assert said.out == "" and f"{folder} holds no tables" in said.err
    (tmp_path / "letters.txt").write_text("mine")
    assert main([str(tmp_path)]) == UNREADABLE and "is no folder of tables" in capsys.readouterr().err


def test_the_command_audits_a_clean_run_that_breaks_nothing_and_exercises_every_rule(out: Path, tmp_path: Path) -> None:
    told = tmp_path / "audit.json"
    command = [sys.executable, "-m", "pipeline.trace.audit"]
    trace = out.parent / "trace"
    trace.joinpath("foreign.kptrace").write_bytes(b"a capture")
    command += [str(out), "--trace", str(trace), "--json", str(told)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "foreign.kptrace is no trace" in done.stderr
    found = json.loads(told.read_text())
    verdicts = {rule.number: HOLDS for rule in RULES} | {WITHOUT_TRANSACTIONS: NOT_EXERCISED}
    assert {one["rule"]: one["verdict"] for one in found["rules"]} == verdicts, done.stdout
    assert done.stdout.startswith(f"0 of {len(RULES)} rules broken, {len(RULES) - 1} hold") and found["status"] == 0
    assert "bytes at byte" in done.stdout.splitlines()[1] and found["remarks"]
