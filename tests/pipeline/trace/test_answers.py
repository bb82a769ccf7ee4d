"""Answers, in Spark: on traffic whose numbers are known, as it was played in virtual time, each tells just these."""

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
from kafkaproto.pipeline.trace.answers.answer import MOST_ROWS, Query, found
from kafkaproto.pipeline.trace.audit.rule import Tables
from kafkaproto.pipeline.trace.schema import TABLES, ddl
from tests.support.pipeline.played import QUOTA, RACKS, SPARK, Row, play, told, windows
from tests.support.pipeline.recorded import write
from tests.support.pipeline.tables import rows as stored

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(240),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of both runs."""
    made = tmp_path_factory.mktemp("answers")
    meta = {
        "advertised": {"0": [0, 11], "1": [0, 17], "2": [0, 9], "3": [0, 12], "18": [0, 4]},
        "brokers": [{"id": i, "rack": rack, "settings": windows(i)} for i, rack in enumerate(RACKS)],
    }
    for run in ("before", "after"):
        write(made / "trace", play(run), run, **meta)
    job.build(made / "trace", made / "out", job.without_spark)
    return made / "out"


@pytest.fixture(scope="module")
def tables(spark: Any, folder: Path) -> Tables:
    """Of the first run."""
    every = Tables.of(spark, folder)
    return Tables(
        *(
            frame.where("run = 'before'").cache()
            for frame in (every.requests, every.partitions, every.batches, every.events, every.state)
        )
    )


def test_throttles_are_added_up_by_client_and_quota(tables: Tables, folder: Path) -> None:
    [one] = told(throttles.ANSWER, "clients", tables)
    waits = [r["decided_ms"] for r in stored(folder, "requests") if r["run"] == "before" and r["client_id"] == "p"]
    assert (one["client_id"], one["api"], one["quota"]) == ("p", "Produce", "Produce") and one[
        "bound_a_second"
    ] == QUOTA
    assert one["throttles"] == sum(wait > 0 for wait in waits) > 0
    assert (one["throttled_ms"], one["longest_ms"]) == (sum(waits), max(waits)) and one["a_minute_or_longer"] == 0
    rates = told(throttles.ANSWER, "rates", tables)
    assert {r["client_id"] for r in rates} == {"p"} and {r["bound"] for r in rates} == {QUOTA}
    assert max(r["throttle_ms"] for r in rates) == max(waits)


def test_the_plan_is_the_broker_at_its_own_quota_and_waits_less_at_more(tables: Tables, folder: Path) -> None:
    plan = [r for r in told(what_if.ANSWER, "planned", tables) if r["client_id"] == "p"]
    waits = [r["decided_ms"] for r in stored(folder, "requests") if r["run"] == "before" and r["client_id"] == "p"]
    [real] = [r for r in plan if r["in_force"]]
    assert (real["quota"], real["differs_from_the_broker"]) == (QUOTA, 0)
    assert (real["throttled_ms"], real["longest_ms"], real["requests"]) == (sum(waits), max(waits), 8)
    by_quota = [r["throttled_ms"] for r in sorted(plan, key=lambda r: r["quota"])]
    assert by_quota == sorted(by_quota, reverse=True) and by_quota[0] > real["throttled_ms"] and by_quota[-1] == 0
    assert {r["quota"] for r in plan} == {5000, 10_000, 20_000, 1e6, 2e6, 5e6, 10e6}


def test_the_ledger_counts_what_was_read_and_what_was_not(tables: Tables) -> None:
    ledger_rows = {r["topic"]: r for r in told(ledger.ANSWER, "partitions", tables)}
    one, other = ledger_rows["t"], ledger_rows["unread"]
    assert (one["batches"], one["acknowledged"], one["read"], one["unread"], one["lost"], one["doubled"]) == (
        8,
        80,
        80,
        0,
        0,
        0,
    )
    assert one["most_reads"] >= 2 and one["p99_to_read_ms"] >= one["p50_to_read_ms"] > 0
    assert (other["acknowledged"], other["read"], other["unread"], other["p50_to_read_ms"]) == (3, 0, 3, None)
    lines = told(ledger.ANSWER, "offsets", tables)
    ends = {
        r["line"]: max(x["offset"] for x in lines if x["line"] == r["line"] and x["topic"] == "t")
        for r in lines
        if r["topic"] == "t"
    }
    assert ends["produced"] == ends["high watermark"] == ends["read by reader-*"] == 80


def changed(spark: Any, folder: Path, **change: Any) -> Tables:
    """The tables of the first run with rows changed by functions, one for each table."""
    frames = {}
    for table, columns in TABLES.items():
        rows = [r for r in stored(folder, table) if r["run"] == "before"]
        rows = change[table](rows) if table in change else rows
        frames[table] = spark.createDataFrame([tuple(r[c.name] for c in columns) for r in rows], ddl(table))
    return Tables(*frames.values())


def test_a_batch_that_every_reader_passes_over_is_lost(spark: Any, folder: Path) -> None:
    def without_the_third(rows: list[Row]) -> list[Row]:
        return [r for r in rows if not (r["api"] == "Fetch" and r["topic"] == "t" and r["base_offset"] == 20)]

    def jumped(rows: list[Row]) -> list[Row]:
        """A fetch that asked for the lost batch and got the next one."""
        one = next(r for r in rows if r["api"] == "Fetch" and r["asked_offset"] == 40)
        return [*rows, one | {"seq": 9_999, "asked_offset": 20, "base_offset": 30}]

    tables = changed(spark, folder, batches=without_the_third, partitions=jumped)
    every, *rows = told(ledger.ANSWER, "partitions", tables)
    [one] = [r for r in rows if r["topic"] == "t"]
    assert (one["read"], one["lost"], one["unread"]) == (70, 10, 0)
    assert (every["topic"], every["partition"], every["lost"]) == (ledger.ALL_TOPICS, None, 10)


def test_the_ledgers_totals_count_partitions_that_are_not_listed(spark: Any, folder: Path) -> None:
    def spread(rows: list[Row]) -> list[Row]:
        """Each batch in a partition of its own, more than are listed."""
        [*_, one] = [r for r in rows if r["api"] == "Produce" and r["topic"] == "unread"]
        return [r for r in rows if r["topic"] != "unread"] + [one | {"partition": n} for n in range(MOST_ROWS + 5)]

    all_found = [found(query, changed(spark, folder, batches=spread)) for query in ledger.ANSWER.queries[:1]]
    [(_, _, rows, more)] = all_found
    totals = {r["topic"]: r for r in rows if r["partition"] is None}
    count = totals["unread"]["acknowledged"] // (MOST_ROWS + 5)
    assert more and count and totals["unread"]["unread"] == totals["unread"]["acknowledged"] == count * (MOST_ROWS + 5)
    assert totals[ledger.ALL_TOPICS]["acknowledged"] == totals["unread"]["acknowledged"] + 80
    assert totals["unread"]["batches"] == MOST_ROWS + 5 and totals.keys() == {"unread", ledger.ALL_TOPICS}


def test_partitions_that_were_only_read_are_told(spark: Any, folder: Path, tables: Tables) -> None:
    def only_fetches(rows: list[Row]) -> list[Row]:
        return [r for r in rows if r["api"] == "Fetch"]

    assert told(ledger.ANSWER, "only-read", tables) == []
    before = changed(spark, folder, batches=only_fetches)
    [one] = told(ledger.ANSWER, "only-read", before)
    assert (one["topic"], one["partition"], one["from_offset"], one["to_offset"]) == ("t", 0, 0, 80)
    fetched = [r for r in stored(folder, "partitions") if r["run"] == "before" and r["api"] == "Fetch"]
    assert (one["fetches"], one["records"]) == (len(fetched), sum(r["records"] for r in fetched))


def test_what_came_again_is_told(spark: Any, folder: Path, tables: Tables) -> None:
    def again(rows: list[Row]) -> list[Row]:
        """The first batch of a producer with sequence numbers, in the request of the second, too: answered as before."""
        first, second, *_ = (r for r in rows if r["api"] == "Produce" and r["topic"] == "t")
        first |= {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
        return [*rows, first | {"seq": second["seq"]}]

    assert told(repeats.ANSWER, "produced", tables) == []
    [sent] = told(repeats.ANSWER, "produced", changed(spark, folder, batches=again))
    assert (sent["client"], sent["topic"], sent["sent_again"], sent["stored_twice"]) == ("p", "t", 1, 0)
    [asked] = told(repeats.ANSWER, "fetched", tables)
    answers = [r["bytes"] for r in stored(folder, "partitions") if r["run"] == "before" and r["records"] == 80]
    assert (asked["client_id"], asked["asked_again"], asked["bytes_again"]) == (SPARK, 1, answers[-1])


def test_a_batch_that_was_stored_twice_is_doubled(spark: Any, folder: Path) -> None:
    def again(rows: list[Row]) -> list[Row]:
        """The first batch as a producer with sequence numbers sent it, stored at the end once more."""
        first = next(r for r in rows if r["api"] == "Produce" and r["topic"] == "t")
        first |= {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
        return [*rows, first | {"seq": 9_999, "base_offset": 80, "last_offset": 89}]

    [one] = [r for r in told(ledger.ANSWER, "partitions", changed(spark, folder, batches=again)) if r["topic"] == "t"]
    assert (one["acknowledged"], one["doubled"]) == (90, 10)


def test_sizes_of_fetches_stand_against_their_limits(tables: Tables) -> None:
    sizes = {r["client"]: r for r in told(fetch_sizes.ANSWER, "clients", tables)}
    reader = sizes["reader-*"]
    assert (reader["fetches"], reader["empty"], reader["max_bytes"], reader["records"]) == (2, 0, 21_000, 80)
    assert reader["full"] == 2 and reader["beyond_for_a_first_batch"] == 0
    assert sum(r["fetches"] for r in told(fetch_sizes.ANSWER, "sizes", tables)) == 4
    assert {r["power_of_two"]: r["fetches"] for r in told(fetch_sizes.ANSWER, "records", tables)} == {5: 2, 6: 2}
    costs = {r["client"]: r["requests_per_1000_records"] for r in told(fetch_sizes.ANSWER, "costs", tables)}
    assert costs["reader-*"] == round(1000 * 3 / 80, 2)


def test_bytes_across_racks_are_told_with_what_could_have_stayed(tables: Tables, folder: Path) -> None:
    read = sum(r["bytes"] for r in stored(folder, "partitions") if r["run"] == "before" and r["api"] == "Fetch")
    by_rack = told(racks.ANSWER, "bytes", tables)
    assert sum(r["bytes"] for r in by_rack) == read and {r["client_rack"] for r in by_rack} == {"b", "${env:RACK}"}
    broker_rack = by_rack[0]["broker_rack"]
    [b] = [r for r in told(racks.ANSWER, "saving", tables) if r["client_rack"] == "b"]
    assert b["bytes"] == b["from_its_own_rack"] + b["across_racks"] > 0
    assert (b["across_racks"] > 0) == (broker_rack != "b") and b["a_replica_there_had_them"] == b["across_racks"]
    [lost] = told(racks.ANSWER, "clients", tables)
    assert lost["client_id"] == SPARK and "variable" in lost["what"]


def test_clients_are_held_against_releases(tables: Tables) -> None:
    kinds = {r["client"]: r for r in told(census.ANSWER, "clients", tables)}
    assert set(kinds) == {"p", "p-*", "reader-*", "consumer-spark-kafka-source-*--*-executor-*"}
    assert kinds["p"]["software"] == "librdkafka 2.5" and kinds["p"]["requests"] == 9
    verdicts = {(r["client"], r["release"]): r for r in told(census.ANSWER, "verdicts", tables)}
    assert verdicts["p", "3.9"]["verdict"] == census.WORKS
    assert verdicts["p", "2.1"]["verdict"] == census.OLDER
    versions = [r for r in told(census.ANSWER, "versions", tables) if r["api"] == "Produce"]
    assert {(r["api_version"], r["offered_from"], r["offered_to"]) for r in versions} == {(9, 0, 11)}


def test_a_client_that_is_too_old_breaks_and_one_that_was_offered_no_more_is_not_known(
    spark: Any, folder: Path
) -> None:
    def old(rows: list[Row]) -> list[Row]:
        return [r | {"api_version": 1} if r["api"] == "Produce" else r for r in rows]

    def offered_no_more(rows: list[Row]) -> list[Row]:
        told = [json.loads(r["facts"]) for r in rows if r["kind"] == "meta"]
        facts = json.dumps(told[0] | {"advertised": {"0": [0, 1]}})
        return [r | {"facts": facts} if r["kind"] == "meta" else r for r in rows]

    def verdict(tables: Tables, release: str) -> tuple[str, str]:
        [one] = [r for r in told(census.ANSWER, "verdicts", tables) if (r["client"], r["release"]) == ("p", release)]
        return one["verdict"], one["because"]

    tables = changed(spark, folder, requests=old)
    assert verdict(tables, "4.0") == (census.BREAKS, "Produce 1 (takes 3 to 12)")
    assert verdict(tables, "3.9") == (census.WORKS, "")
    tables = changed(spark, folder, requests=old, events=offered_no_more)
    assert verdict(tables, "4.0")[0] == census.UNKNOWN


def test_a_spark_query_is_told_what_it_costs_and_what_to_set(tables: Tables) -> None:
    [one] = told(spark_doctor.ANSWER, "queries", tables)
    assert (one["query"], one["consumers"], one["fetches"], one["list_offsets"]) == (
        "spark-kafka-source-0059f3c4",
        1,
        2,
        6,
    )
    assert one["records"] == 160 and one["bytes_again"] > 0 and one["literal_rack"] == "${env:RACK}"
    assert {r["option"] for r in told(spark_doctor.ANSWER, "advice", tables)} == {
        "minPartitions",
        "kafka.config.providers",
    }


def test_the_parts_of_latency_are_those_of_the_requests(tables: Tables, folder: Path) -> None:
    parts = {(r["api"], r["part"]): r for r in told(latency.ANSWER, "parts", tables)}
    requests = [r for r in stored(folder, "requests") if r["run"] == "before" and r["api"] == "Produce"]
    assert parts["Produce", "throttled"]["most_ms"] == max(r["decided_ms"] for r in requests)
    assert parts["Produce", "total"]["requests"] == len(requests)
    assert ("Produce", "handled or waiting") not in parts  # this broker tells one from the other
    waited = [r["wait_ms"] for r in stored(folder, "requests") if r["run"] == "before" and r["api"] == "Fetch"]
    assert parts["Fetch", "waited"]["most_ms"] == round(max(waited), 3)
    for r in requests:
        assert 0 <= r["wait_ms"] <= (r["ready_ns"] - r["handled_ns"]) / 1e6
    lanes = told(latency.ANSWER, "lanes", tables)
    assert all(r["received_ms"] <= r["handled_ms"] <= r["ready_ms"] for r in lanes) and any(
        r["muted_ms"] for r in lanes
    )
    assert len(told(latency.ANSWER, "slowest", tables)) == len(told(latency.ANSWER, "largest", tables)) == 20


def test_the_difference_of_two_runs_is_only_what_differs(spark: Any, folder: Path) -> None:
    every = Tables.of(spark, folder)
    answer = diff.answer("before", "after")
    assert [(r["client"], r["api"], r["api_version"], r["what"]) for r in told(answer, "versions", every)] == [
        ("reader-*", "Metadata", 9, "new")
    ]
    assert [(r["api"], r["error"], r["before"], r["after"]) for r in told(answer, "errors", every)] == [
        ("Fetch", 1, 0, 1)
    ]
    assert [(r["client"], r["before"], r["after"]) for r in told(answer, "again", every)] == [("reader-*", 0, 1)]
    assert told(answer, "counts", every) == []
    same = diff.answer("before", "before")
    assert all(told(same, query.name, every) == [] for query in same.queries if query.name != "versions")


def test_the_difference_of_runs_is_told_whatever_their_names(spark: Any, folder: Path) -> None:
    """A capture is called as its file."""
    names = {"before": "a 'b' {c} {}.pcap", "after": "{requests}.pcap"}

    def renamed(table: str) -> Any:
        rows = [r | {"run": names[r["run"]]} for r in stored(folder, table)]
        return spark.createDataFrame([tuple(r[c.name] for c in TABLES[table]) for r in rows], ddl(table))

    every = Tables(*map(renamed, TABLES))
    answer = diff.answer(names["before"], names["after"])
    assert [(r["client"], r["before"], r["after"]) for r in told(answer, "again", every)] == [("reader-*", 0, 1)]
    [versions] = [query for query in answer.queries if query.name == "versions"]
    assert names["before"].replace("'", "\\'") in versions.source and "FROM requests WHERE" in versions.source


def test_a_table_that_is_too_long_says_so(tables: Tables) -> None:
    one = found(Query("n", "numbers", f"SELECT id FROM range({MOST_ROWS + 5})"), tables)
    assert len(one.rows) == MOST_ROWS and one.more


def test_every_query_can_be_read(tables: Tables) -> None:
    for answer in (throttles, what_if, ledger, latency, fetch_sizes, racks, census, spark_doctor):
        for query in answer.ANSWER.queries:
            assert "SELECT" in query.source or "def " in query.source
