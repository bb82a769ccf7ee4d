"""Trace analyses in Spark, on virtual-time traffic with known numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafkaproto.pipeline.trace import tables as job
from kafkaproto.pipeline.trace.answers import (
    census,
    diff,
    fetch_sizes,
    latency,
    ledger,
    racks,
    repeats,
    spark_doctor,
    throttles,
    what_if,
)
from kafkaproto.pipeline.trace.answers.answer import MAX_ROWS, Query, evaluate_query
from kafkaproto.pipeline.trace.audit.rule import NAMES, Tables
from kafkaproto.pipeline.trace.schema import TABLES, ddl
from tests.support.pipeline.played import QUOTA, RACKS, SPARK, Row, answer_rows, play, windows
from tests.support.pipeline.recorded import write
from tests.support.pipeline.tables import rows as stored

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(240),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the tables of both runs."""
    workspace = tmp_path_factory.mktemp("answers")
    meta = {
        "advertised": {"0": [0, 11], "1": [0, 17], "2": [0, 9], "3": [0, 12], "18": [0, 4]},
        "brokers": [{"id": i, "rack": rack, "settings": windows(i)} for i, rack in enumerate(RACKS)],
    }
    for run in ("before", "after"):
        write(workspace / "trace", play(run), run, **meta)
    job.build(workspace / "trace", workspace / "out", job.without_spark)
    return workspace / "out"


@pytest.fixture(scope="module")
def tables(spark: Any, folder: Path) -> Tables:
    """Return the tables of the first run."""
    every = Tables.of(spark, folder)
    return Tables(*(every.table(name).where("run = 'before'").cache() for name in NAMES))


def test_throttle_analysis_sums_throttle_times_by_client_and_quota(tables: Tables, folder: Path) -> None:
    [client_row] = answer_rows(throttles.ANSWER, "clients", tables)
    waits = [
        r["applied_throttle_ms"] for r in stored(folder, "requests") if r["run"] == "before" and r["client_id"] == "p"
    ]
    assert (client_row["client_id"], client_row["api"], client_row["quota"]) == (
        "p",
        "Produce",
        "Produce",
    ) and client_row["bound_a_second"] == QUOTA
    assert client_row["throttles"] == sum(wait > 0 for wait in waits) > 0
    assert (client_row["throttled_ms"], client_row["longest_ms"]) == (sum(waits), max(waits)) and client_row[
        "a_minute_or_longer"
    ] == 0
    rates = answer_rows(throttles.ANSWER, "rates", tables)
    assert {r["client_id"] for r in rates} == {"p"} and {r["bound"] for r in rates} == {QUOTA}
    assert max(r["throttle_ms"] for r in rates) == max(waits)


def test_throttle_times_predicted_for_the_recorded_quota_equal_the_recorded_times(tables: Tables, folder: Path) -> None:
    plan = [r for r in answer_rows(what_if.ANSWER, "planned", tables) if r["client_id"] == "p"]
    waits = [
        r["applied_throttle_ms"] for r in stored(folder, "requests") if r["run"] == "before" and r["client_id"] == "p"
    ]
    [real] = [r for r in plan if r["in_force"]]
    assert (real["quota"], real["differs_from_the_broker"]) == (QUOTA, 0)
    assert (real["throttled_ms"], real["longest_ms"], real["requests"]) == (sum(waits), max(waits), 8)
    by_quota = [r["throttled_ms"] for r in sorted(plan, key=lambda r: r["quota"])]
    assert by_quota == sorted(by_quota, reverse=True) and by_quota[0] > real["throttled_ms"] and by_quota[-1] == 0
    assert {r["quota"] for r in plan} == {5000, 10_000, 20_000, 1e6, 2e6, 5e6, 10e6}


def test_record_analysis_counts_the_read_and_the_unread_records_of_each_topic(tables: Tables) -> None:
    ledger_rows = {r["topic"]: r for r in answer_rows(ledger.ANSWER, "partitions", tables)}
    first, other = ledger_rows["t"], ledger_rows["unread"]
    assert (
        first["batches"],
        first["acknowledged"],
        first["read"],
        first["unread"],
        first["lost"],
        first["stored_twice"],
    ) == (
        8,
        80,
        80,
        0,
        0,
        0,
    )
    assert first["max_reads"] >= 2 and first["p99_to_read_ms"] >= first["p50_to_read_ms"] > 0
    assert (other["acknowledged"], other["read"], other["unread"], other["p50_to_read_ms"]) == (3, 0, 3, None)
    lines = answer_rows(ledger.ANSWER, "offsets", tables)
    ends = {
        r["line"]: max(x["offset"] for x in lines if x["line"] == r["line"] and x["topic"] == "t")
        for r in lines
        if r["topic"] == "t"
    }
    assert ends["produced"] == ends["high watermark"] == ends["read by reader-*"] == 80


def changed(spark: Any, folder: Path, **change: Any) -> Tables:
    """Return the tables of the first run, with the rows of each table in `change` passed through its function."""
    frames = {}
    for table, columns in TABLES.items():
        rows = [r for r in stored(folder, table) if r["run"] == "before"]
        rows = change[table](rows) if table in change else rows
        frames[table] = spark.createDataFrame([tuple(r[c.name] for c in columns) for r in rows], ddl(table))
    return Tables(*frames.values())


def test_record_analysis_reports_10_lost_records_if_fetches_skip_a_batch_of_10(spark: Any, folder: Path) -> None:
    def without_the_third(rows: list[Row]) -> list[Row]:
        return [r for r in rows if not (r["api"] == "Fetch" and r["topic"] == "t" and r["base_offset"] == 20)]

    def jumped(rows: list[Row]) -> list[Row]:
        """Return a fetch that requested the lost batch and got the next one."""
        fetch_row = next(r for r in rows if r["api"] == "Fetch" and r["requested_offset"] == 40)
        return [*rows, fetch_row | {"seq": 9_999, "requested_offset": 20, "base_offset": 30}]

    tables = changed(spark, folder, batches=without_the_third, partitions=jumped)
    every, *rows = answer_rows(ledger.ANSWER, "partitions", tables)
    [topic_row] = [r for r in rows if r["topic"] == "t"]
    assert (topic_row["read"], topic_row["lost"], topic_row["unread"]) == (70, 10, 0)
    assert (every["topic"], every["partition"], every["lost"]) == (ledger.ALL_TOPICS, None, 10)


def test_topic_totals_include_all_partitions_even_if_the_table_shows_only_1000_rows(spark: Any, folder: Path) -> None:
    def spread(rows: list[Row]) -> list[Row]:
        """Put each batch into its own partition; there are more partitions than the report lists."""
        [*_, produce_row] = [r for r in rows if r["api"] == "Produce" and r["topic"] == "unread"]
        return [r for r in rows if r["topic"] != "unread"] + [
            produce_row | {"partition": n} for n in range(MAX_ROWS + 5)
        ]

    all_found = [evaluate_query(query, changed(spark, folder, batches=spread)) for query in ledger.ANSWER.queries[:1]]
    [(_, _, rows, more)] = all_found
    totals = {r["topic"]: r for r in rows if r["partition"] is None}
    count = totals["unread"]["acknowledged"] // (MAX_ROWS + 5)
    assert more and count and totals["unread"]["unread"] == totals["unread"]["acknowledged"] == count * (MAX_ROWS + 5)
    assert totals[ledger.ALL_TOPICS]["acknowledged"] == totals["unread"]["acknowledged"] + 80
    assert totals["unread"]["batches"] == MAX_ROWS + 5 and totals.keys() == {"unread", ledger.ALL_TOPICS}


def test_record_analysis_lists_partitions_that_have_fetches_but_no_produces(
    spark: Any, folder: Path, tables: Tables
) -> None:
    def only_fetches(rows: list[Row]) -> list[Row]:
        return [r for r in rows if r["api"] == "Fetch"]

    assert answer_rows(ledger.ANSWER, "only-read", tables) == []
    before = changed(spark, folder, batches=only_fetches)
    [partition_row] = answer_rows(ledger.ANSWER, "only-read", before)
    assert (
        partition_row["topic"],
        partition_row["partition"],
        partition_row["from_offset"],
        partition_row["to_offset"],
    ) == ("t", 0, 0, 80)
    fetched = [r for r in stored(folder, "partitions") if r["run"] == "before" and r["api"] == "Fetch"]
    assert (partition_row["fetches"], partition_row["records"]) == (len(fetched), sum(r["records"] for r in fetched))


def test_repeat_analysis_counts_batches_sent_twice_and_offsets_fetched_twice(
    spark: Any, folder: Path, tables: Tables
) -> None:
    def again(rows: list[Row]) -> list[Row]:
        """Repeat the first batch of an idempotent producer in the request of the second one, with the same response."""
        first, second, *_ = (r for r in rows if r["api"] == "Produce" and r["topic"] == "t")
        first |= {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
        return [*rows, first | {"seq": second["seq"]}]

    assert answer_rows(repeats.ANSWER, "produced", tables) == []
    [sent] = answer_rows(repeats.ANSWER, "produced", changed(spark, folder, batches=again))
    assert (sent["client"], sent["topic"], sent["sent_again"], sent["stored_twice"]) == ("p", "t", 1, 0)
    [fetch_row] = answer_rows(repeats.ANSWER, "fetched", tables)
    fetched_bytes = [r["bytes"] for r in stored(folder, "partitions") if r["run"] == "before" and r["records"] == 80]
    assert (fetch_row["client_id"], fetch_row["fetched_again"], fetch_row["bytes_again"]) == (
        SPARK,
        1,
        fetched_bytes[-1],
    )


def test_record_analysis_reports_10_records_stored_twice_if_a_batch_is_stored_again(spark: Any, folder: Path) -> None:
    def again(rows: list[Row]) -> list[Row]:
        """Store the first batch of an idempotent producer again at the end of the log."""
        first = next(r for r in rows if r["api"] == "Produce" and r["topic"] == "t")
        first |= {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
        return [*rows, first | {"seq": 9_999, "base_offset": 80, "last_offset": 89}]

    [partition_row] = [
        r for r in answer_rows(ledger.ANSWER, "partitions", changed(spark, folder, batches=again)) if r["topic"] == "t"
    ]
    assert (partition_row["acknowledged"], partition_row["stored_twice"]) == (90, 10)


def test_fetch_size_analysis_counts_empty_and_full_fetches_of_each_client(tables: Tables) -> None:
    sizes = {r["client"]: r for r in answer_rows(fetch_sizes.ANSWER, "clients", tables)}
    reader = sizes["reader-*"]
    assert (reader["fetches"], reader["empty"], reader["max_bytes"], reader["records"]) == (2, 0, 21_000, 80)
    assert reader["full"] == 2 and reader["beyond_for_a_first_batch"] == 0
    assert sum(r["fetches"] for r in answer_rows(fetch_sizes.ANSWER, "sizes", tables)) == 4
    assert {r["power_of_two"]: r["fetches"] for r in answer_rows(fetch_sizes.ANSWER, "records", tables)} == {5: 2, 6: 2}
    costs = {r["client"]: r["requests_per_1000_records"] for r in answer_rows(fetch_sizes.ANSWER, "costs", tables)}
    assert costs["reader-*"] == round(1000 * 3 / 80, 2)


def test_rack_analysis_counts_bytes_fetched_from_brokers_in_another_rack(tables: Tables, folder: Path) -> None:
    read = sum(r["bytes"] for r in stored(folder, "partitions") if r["run"] == "before" and r["api"] == "Fetch")
    by_rack = answer_rows(racks.ANSWER, "bytes", tables)
    assert sum(r["bytes"] for r in by_rack) == read and {r["client_rack"] for r in by_rack} == {"b", "${env:RACK}"}
    broker_rack = by_rack[0]["broker_rack"]
    [b] = [r for r in answer_rows(racks.ANSWER, "saving", tables) if r["client_rack"] == "b"]
    assert b["bytes"] == b["from_its_own_rack"] + b["across_racks"] > 0
    assert (b["across_racks"] > 0) == (broker_rack != "b") and b["avoidable_across_racks"] == b["across_racks"]
    [lost] = answer_rows(racks.ANSWER, "clients", tables)
    assert lost["client_id"] == SPARK and "variable" in lost["reason"]


def test_client_version_analysis_lists_kafka_releases_that_each_client_works_with(tables: Tables) -> None:
    kinds = {r["client"]: r for r in answer_rows(census.ANSWER, "clients", tables)}
    assert set(kinds) == {"p", "p-*", "reader-*", "consumer-spark-kafka-source-*--*-executor-*"}
    assert kinds["p"]["software"] == "librdkafka 2.5" and kinds["p"]["requests"] == 9
    verdicts = {(r["client"], r["release"]): r for r in answer_rows(census.ANSWER, "verdicts", tables)}
    assert verdicts["p", "3.9"]["verdict"] == census.WORKS
    assert verdicts["p", "2.1"]["verdict"] == census.OLDER
    versions = [r for r in answer_rows(census.ANSWER, "versions", tables) if r["api"] == "Produce"]
    assert {(r["api_version"], r["offered_from"], r["offered_to"]) for r in versions} == {(9, 0, 11)}


def test_client_version_analysis_says_that_kafka_4_0_rejects_a_produce_v1_client(spark: Any, folder: Path) -> None:
    def old(rows: list[Row]) -> list[Row]:
        return [r | {"api_version": 1} if r["api"] == "Produce" else r for r in rows]

    def offered_no_more(rows: list[Row]) -> list[Row]:
        metas = [json.loads(r["facts"]) for r in rows if r["kind"] == "meta"]
        facts = json.dumps(metas[0] | {"advertised": {"0": [0, 1]}})
        return [r | {"facts": facts} if r["kind"] == "meta" else r for r in rows]

    def verdict(tables: Tables, release: str) -> tuple[str, str]:
        [verdict_row] = [
            r for r in answer_rows(census.ANSWER, "verdicts", tables) if (r["client"], r["release"]) == ("p", release)
        ]
        return verdict_row["verdict"], verdict_row["reason"]

    tables = changed(spark, folder, requests=old)
    assert verdict(tables, "4.0") == (census.BREAKS, "Produce 1 (accepts 3 to 12)")
    assert verdict(tables, "3.9") == (census.WORKS, "")
    tables = changed(spark, folder, requests=old, events=offered_no_more)
    assert verdict(tables, "4.0")[0] == census.UNKNOWN


def test_spark_analysis_counts_requests_of_a_spark_query_and_suggests_spark_options(tables: Tables) -> None:
    [query_row] = answer_rows(spark_doctor.ANSWER, "queries", tables)
    assert (query_row["query"], query_row["consumers"], query_row["fetches"], query_row["list_offsets"]) == (
        "spark-kafka-source-0059f3c4",
        1,
        2,
        6,
    )
    assert query_row["records"] == 160 and query_row["bytes_again"] > 0 and query_row["literal_rack"] == "${env:RACK}"
    assert {r["option"] for r in answer_rows(spark_doctor.ANSWER, "advice", tables)} == {
        "minPartitions",
        "kafka.config.providers",
    }


def test_latency_analysis_splits_request_times_into_handling_waiting_and_throttle(tables: Tables, folder: Path) -> None:
    parts = {(r["api"], r["part"]): r for r in answer_rows(latency.ANSWER, "parts", tables)}
    requests = [r for r in stored(folder, "requests") if r["run"] == "before" and r["api"] == "Produce"]
    assert parts["Produce", "throttled"]["max_ms"] == max(r["applied_throttle_ms"] for r in requests)
    assert parts["Produce", "total"]["requests"] == len(requests)
    assert ("Produce", "handled or waiting") not in parts  # this broker distinguishes the two
    waited = [r["wait_ms"] for r in stored(folder, "requests") if r["run"] == "before" and r["api"] == "Fetch"]
    assert parts["Fetch", "waited"]["max_ms"] == round(max(waited), 3)
    for r in requests:
        assert 0 <= r["wait_ms"] <= (r["ready_ns"] - r["handled_ns"]) / 1e6
    lanes = answer_rows(latency.ANSWER, "lanes", tables)
    assert all(r["received_ms"] <= r["handled_ms"] <= r["ready_ms"] for r in lanes) and any(
        r["muted_ms"] for r in lanes
    )
    assert (
        len(answer_rows(latency.ANSWER, "slowest", tables)) == len(answer_rows(latency.ANSWER, "largest", tables)) == 20
    )


def test_comparison_of_two_recordings_lists_only_what_differs_between_the_recordings(spark: Any, folder: Path) -> None:
    every = Tables.of(spark, folder)
    answer = diff.answer("before", "after")
    assert [(r["client"], r["api"], r["api_version"], r["change"]) for r in answer_rows(answer, "versions", every)] == [
        ("reader-*", "Metadata", 9, "new")
    ]
    assert [(r["api"], r["error"], r["before"], r["after"]) for r in answer_rows(answer, "errors", every)] == [
        ("Fetch", 1, 0, 1)
    ]
    assert [(r["client"], r["before"], r["after"]) for r in answer_rows(answer, "again", every)] == [("reader-*", 0, 1)]
    assert answer_rows(answer, "counts", every) == []
    same = diff.answer("before", "before")
    assert all(answer_rows(same, query.name, every) == [] for query in same.queries if query.name != "versions")


def test_comparison_of_two_recordings_accepts_file_names_with_quotes_and_braces(spark: Any, folder: Path) -> None:
    """A capture's run is named after its file."""
    names = {"before": "a 'b' {c} {}.pcap", "after": "{requests}.pcap"}

    def renamed(table: str) -> Any:
        rows = [r | {"run": names[r["run"]]} for r in stored(folder, table)]
        return spark.createDataFrame([tuple(r[c.name] for c in TABLES[table]) for r in rows], ddl(table))

    every = Tables(*map(renamed, TABLES))
    answer = diff.answer(names["before"], names["after"])
    assert [(r["client"], r["before"], r["after"]) for r in answer_rows(answer, "again", every)] == [("reader-*", 0, 1)]
    [versions] = [query for query in answer.queries if query.name == "versions"]
    assert names["before"].replace("'", "\\'") in versions.source and "FROM requests WHERE" in versions.source


def test_truncated_result_of_an_analysis_query_says_that_there_are_more_rows(tables: Tables) -> None:
    result_table = evaluate_query(Query("n", "numbers", f"SELECT id FROM range({MAX_ROWS + 5})"), tables)
    assert len(result_table.rows) == MAX_ROWS and result_table.more


def test_source_of_every_trace_analysis_query_contains_a_select_or_a_python_function(tables: Tables) -> None:
    for answer in (throttles, what_if, ledger, latency, fetch_sizes, racks, census, spark_doctor):
        for query in answer.ANSWER.queries:
            assert "SELECT" in query.source or "def " in query.source
