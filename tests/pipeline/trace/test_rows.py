"""Rows of a trace: declared columns with what clients requested and the broker returned, for any frame."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.broker.quota.forced import ForcedThrottle
from kafkaproto.messages.api_versions import ApiVersionsRequest
from kafkaproto.messages.fetch import FetchRequest, ForgottenTopic
from kafkaproto.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafkaproto.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafkaproto.pipeline.trace.columns import Row
from kafkaproto.pipeline.trace.rows import Rows
from kafkaproto.pipeline.trace.schema import TABLES
from kafkaproto.records.batch import NewRecord, build_batch
from kafkaproto.records.compression import Compression
from kafkaproto.trace.format import Entry, Event, Positions, State
from tests.support.recording import Bench
from tests.support.wire import batch, fetch, limit, metadata, produce, produce_of_bytes

TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "int": (int,),
    "bigint": (int,),
    "double": (float,),
    "boolean": (bool,),
}
LARGEST = {"int": 2**31 - 1, "bigint": 2**63 - 1}


def rows_of(entries: list[Entry]) -> dict[str, list[Row]]:
    row_builder = Rows("r", 1_700_000_000_000, 0)
    all_rows: dict[str, list[Row]] = {table: [] for table in TABLES}
    for entry in entries:
        for table, row in row_builder.of(entry):
            check(table, row)
            all_rows[table].append(row)
    return all_rows


def check(table: str, row: Row) -> None:
    assert set(row) == {column.name for column in TABLES[table]}
    for name, type_, _, _ in TABLES[table]:
        value = row[name]
        assert value is None or type(value) in TYPES[type_], (name, value)
        assert type_ not in LARGEST or value is None or -LARGEST[type_] - 1 <= value <= LARGEST[type_], (name, value)


def of(rows: list[Row], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_trace_entry_with_log_offsets_of_two_partitions_gives_a_row_per_partition() -> None:
    logs = (Positions("t", 0, True, 5, 4, 1, 9), Positions("u", 3, False, 7, 7, 0, 7))
    names = ("run", "seq", "hour", "broker", "clock_ms", "at_ns")
    rows = rows_of([State(8, 2, 3_600_000, 77, logs)])["state"]
    assert of(rows, *names) == [("r", 8, "1970-01-01T01", 2, 3_600_000, 77)] * 2
    assert of(rows, *Positions._fields) == list(logs)


def test_request_row_contains_the_wait_time_of_a_fetch_or_null_if_it_is_unknown(bench: Bench) -> None:
    client = bench.cluster.connect()
    client.send(fetch(("t", 0, 0), max_wait_ms=500, min_bytes=1), 11)
    bench.cluster.advance(500)
    [exchange] = bench.exchanges
    [row], [unknown] = rows_of([exchange])["requests"], rows_of([exchange._replace(wait_ns=-1)])["requests"]
    assert row["wait_ms"] == exchange.wait_ns / 1e6 > 0 and unknown["wait_ms"] is None


def test_traced_produce_gives_rows_in_the_tables_requests_partitions_and_batches(bench: Bench) -> None:
    client = bench.cluster.connect(client_id="p")
    client.ask(produce("t", batch(b"0")), 9)
    bench.entries.clear()
    data = [batch(b"x" * 5000, b"y", producer_id=7, producer_epoch=1, base_sequence=3), batch(b"z")]
    partitions = [PartitionProduceData(0, data[0]), PartitionProduceData(1, data[1]), PartitionProduceData(77, data[1])]
    client.ask(ProduceRequest(None, -1, 1000, [TopicProduceData("t", partition_data=partitions)]), 9)
    rows = rows_of(bench.entries)
    [request] = rows["requests"]
    [exchange] = bench.exchanges
    assert (request["api"], request["api_version"], request["client_id"], request["acks"]) == ("Produce", 9, "p", -1)
    assert (request["bytes_in"], request["bytes_out"]) == (exchange.request_bytes, exchange.response_bytes)
    assert (request["records_bytes"], request["error"], request["problem"]) == (
        len(data[0]) + 2 * len(data[1]),
        3,
        None,
    )
    assert (request["throttle_ms"], request["applied_throttle_ms"], request["throttle_quota"]) == (0, 0, None)
    columns = ("position", "topic", "partition", "error", "base_offset", "next_offset", "batches", "records", "bytes")
    assert of(rows["partitions"], *columns) == [
        (0, "t", 0, 0, 1, 3, 1, 2, len(data[0])),
        (1, "t", 1, 0, 0, 1, 1, 1, len(data[1])),
        (2, "t", 77, 3, None, None, 1, 1, len(data[1])),
    ]
    columns = ("partition", "base_offset", "last_offset", "count", "bytes", "producer_id", "base_sequence", "control")
    assert of(rows["batches"], *columns) == [
        (0, 1, 2, 2, len(data[0]), 7, 3, False),
        (1, 0, 0, 1, len(data[1]), -1, -1, False),
        (77, None, None, 1, len(data[1]), -1, -1, False),
    ]
    assert {row["hour"] for table in rows.values() for row in table} == {request["hour"]}
    assert {row["seq"] for row in rows["partitions"] + rows["batches"]} == {exchange.seq}


def test_traced_produce_without_a_response_gives_batch_rows_without_offsets(bench: Bench) -> None:
    client = bench.cluster.connect()
    client.send(produce("t", batch(b"x"), acks=0), 9)
    rows = rows_of(bench.entries)
    assert of(rows["requests"], "acks", "has_response", "bytes_out", "error") == [(0, False, 0, None)]
    assert of(rows["partitions"], "error", "base_offset", "records") == [(None, None, 1)]
    assert of(rows["batches"], "base_offset", "count") == [(None, 1)]


@pytest.mark.parametrize("version", [4, 11, 12])
def test_table_rows_of_a_fetch_contain_limits_and_returned_data_per_partition(bench: Bench, version: int) -> None:
    client = bench.cluster.connect()
    stored = [batch(b"x" * size) for size in (10, 300, 20)]
    for data in stored:
        client.ask(produce("t", data, partition=1), 9)
    bench.entries.clear()
    fetch_request = fetch(
        ("t", 1, 1), ("t", 2, 5), partition_max=5000, max_bytes=9000, rack="a", isolation=1, version=version
    )
    client.ask(fetch_request, version)
    rows = rows_of(bench.entries)
    columns = ("max_bytes", "min_bytes", "max_wait_ms", "isolation", "replica_id", "rack", "records_bytes", "error")
    expected = sum(map(len, stored[1:]))
    [request] = of(rows["requests"], *columns)
    assert request == (9000, 1, 0, 1, -1, "a" if version >= 11 else "", expected, 1)
    columns = (
        "partition",
        "requested_offset",
        "limit_bytes",
        "error",
        "base_offset",
        "next_offset",
        "records",
        "bytes",
    )
    by_partition = {row["partition"]: row for row in rows["partitions"]}
    assert of([by_partition[1]], *columns) == [(1, 1, 5000, 0, 1, 3, 2, expected)]
    assert of([by_partition[1]], "high_watermark", "last_stable_offset", "first_batch_bytes") == [
        (3, 3, len(stored[1]))
    ]
    assert of([by_partition[2]], *columns) == [(2, 5, 5000, 1, None, None, 0, 0)]
    assert of(rows["batches"], "partition", "position", "base_offset", "bytes") == [
        (1, 0, 1, len(stored[1])),
        (1, 1, 2, len(stored[2])),
    ]


def test_table_rows_of_list_offsets_contain_requested_timestamp_and_returned_offset(bench: Bench) -> None:
    client = bench.cluster.connect()
    client.ask(produce("t", batch(b"x", b"y")), 9)
    bench.entries.clear()
    partitions = [ListOffsetsPartition(0, timestamp=-1), ListOffsetsPartition(9, timestamp=-2)]
    client.ask(ListOffsetsRequest(-1, 0, [ListOffsetsTopic("t", partitions)]), 7)
    rows = rows_of(bench.entries)
    assert of(rows["partitions"], "api", "partition", "requested_timestamp", "error", "base_offset") == [
        ("ListOffsets", 0, -1, 0, 2),
        ("ListOffsets", 9, -2, 3, -1),
    ]


def test_request_row_contains_the_throttle_time_and_quota_of_the_throttle_event(bench: Bench) -> None:
    limit(bench.cluster, producer_byte_rate=10_000.0)
    client = bench.cluster.connect()
    client.ask(produce_of_bytes(client, "t", 105_000), 9)
    bench.cluster.state.forced_throttles.add(ForcedThrottle(7))
    bench.cluster.connect(client_id="other").ask(metadata(), 9)
    rows = rows_of(bench.entries)
    assert of(rows["requests"], "api", "throttle_ms", "applied_throttle_ms", "throttle_quota", "quota_entity") == [
        ("Produce", 500, 500, "Produce", "client-id 'test'"),
        ("Metadata", 7, 7, "Forced", None),
    ]
    numbers = ("quota_value", "quota_bound", "quota_rate", "quota_window_ms")
    assert of(rows["requests"], *numbers) == [(105_000.0, 10_000.0, 10_500.0, 10_000), (None, None, None, None)]
    assert [row["kind"] for row in rows["events"]].count("throttle") == 2


def test_throttle_of_a_request_row_is_null_if_the_response_has_no_throttle_field(bench: Bench) -> None:
    client = bench.cluster.connect()
    client.ask(metadata(["t"]), 2)
    client.ask(metadata(["t"]), 3)
    assert of(rows_of(bench.entries)["requests"], "throttle_ms", "applied_throttle_ms") == [(None, 0), (0, 0)]


def test_throttled_fetch_adds_a_row_to_table_requests_but_none_to_table_partitions(bench: Bench) -> None:
    client = bench.cluster.connect()
    client.ask(produce("t", batch(b"x" * 5000)), 9)
    bench.cluster.state.forced_throttles.add(ForcedThrottle(7, api="Fetch"))
    bench.entries.clear()
    client.ask(fetch(("t", 0, 0)), 11)
    rows = rows_of(bench.entries)
    assert of(rows["requests"], "throttle_ms", "applied_throttle_ms", "records_bytes") == [(7, 7, 0)]
    assert rows["partitions"] == rows["batches"] == []


def test_incremental_fetch_rows_contain_offsets_and_limits_stored_in_the_session(bench: Bench) -> None:
    client = bench.cluster.connect()
    session_id = client.ask(fetch(("t", 0, 0), ("t", 1, 0), partition_max=3000, session=(0, 0)), 11).session_id
    assert session_id

    def step(epoch: int, request: FetchRequest, partition: int) -> list[tuple[Any, ...]]:
        client.ask(produce("t", batch(b"x"), partition), 9)
        request.session_id, request.session_epoch = session_id, epoch
        client.send(request, 11)
        answered = [row for row in rows_of(bench.entries)["partitions"] if row["api"] == "Fetch" and row["records"]]
        return of(answered, "partition", "requested_offset", "limit_bytes")

    assert step(1, fetch(), 1) == [(1, 0, 3000)]
    second_step = step(2, fetch(("t", 1, 1), partition_max=4000), 0)
    assert sorted(second_step[1:]) == [(0, 0, 3000)]
    forgets = fetch(("t", 0, 1))
    forgets.forgotten_topics_data = [ForgottenTopic("t", partitions=[1])]
    assert step(3, forgets, 1) == second_step
    # The step in between is lost: no rows are invented.
    bench.entries.remove(next(exchange for exchange in bench.exchanges if exchange.seq == bench.exchanges[-1].seq))
    assert step(4, fetch(), 0)[-1] == (0, None, None)


def test_rows_of_correct_fetch_sessions_show_0_missing_and_0_unrequested_partitions(bench: Bench) -> None:
    """The broker is correct here; the tests of injected faults check the numbers of incorrect ones."""
    client, other = bench.cluster.connect(), bench.cluster.connect()
    session_id = client.ask(fetch(("t", 0, 0), ("t", 1, 0), session=(0, 0)), 11).session_id
    other.ask(produce("t", batch(b"x")), 9)
    other.ask(fetch(("t", 0, 0)), 11)
    client.ask(fetch(session=(session_id, 1)), 11)
    client.ask(fetch(session=(session_id, 1)), 11)
    client.ask(fetch(("t", 0, 1), session=(session_id, 2)), 11)
    fetches = [
        r
        for r in rows_of(bench.entries)["requests"]
        if r["api"] == "Fetch" and r["conn"] == client.connection.connection_id
    ]
    columns = ("session_expected", "requested_partitions", "session_missing", "session_strays", "more", "error")
    assert of(fetches, *columns) == [
        (None, 2, 0, 0, False, 0),
        (1, 2, 0, 0, False, 0),
        (2, None, None, None, None, 71),  # no rows are invented afterwards
        (None, None, None, None, None, 0),
    ]


def test_fetch_row_counts_partitions_missing_from_an_incremental_fetch_response(bench: Bench) -> None:
    client, other = bench.cluster.connect(), bench.cluster.connect()
    session_id = client.ask(fetch(("t", 0, 0), ("t", 1, 0), session=(0, 0)), 11).session_id
    empty = client.ask(fetch(session=(session_id, 1)), 11)
    assert empty.responses == []
    [_, without] = bench.exchanges
    other.ask(produce("t", batch(b"x")), 9)
    other.ask(fetch(("t", 0, 0)), 11)
    client.ask(fetch(session=(session_id, 2)), 11)
    *before, answered = bench.entries
    late = answered._replace(response=without.response, response_records=())
    assert rows_of([*before, late])["requests"][-1]["session_missing"] == 1
    # A topic that existed before the first event about it has nothing missing.
    early = late._replace(handled_ns=without.ready_ns)
    assert rows_of([*before, early])["requests"][-1]["session_missing"] == 0


def test_request_row_contains_the_client_software_name_and_the_listener(bench: Bench) -> None:
    client = bench.cluster.connect()
    client.ask(ApiVersionsRequest("its name", "1.2"), 3)
    client.ask(metadata(["t"]), 12)
    client.ask(metadata(["t"]), 12)
    rows = rows_of(bench.entries)
    columns = ("principal", "listener", "software", "muted_until_ms")
    assert of(rows["requests"][1:], *columns) == [("ANONYMOUS", "PLAINTEXT", "its name 1.2", None)] * 2
    facts = [(row["kind"], json.loads(row["facts"])) for row in rows["events"] if row["kind"] in ("named", "rack")]
    topic_id = bench.cluster.state.controller.image.topics["t"].topic_id.hex()
    begun_ns = rows["requests"][1]["handled_ns"]
    assert facts == [
        ("named", {"begun_ns": begun_ns, "topic": "t", "topic_id": topic_id}),
        ("rack", {"begun_ns": begun_ns, "node": 0, "rack": None}),
    ]


def test_row_of_a_fetch_by_topic_id_has_the_topic_name_after_a_metadata_response(bench: Bench) -> None:
    client = bench.cluster.connect()
    topic_id = bench.cluster.state.controller.image.topics["t"].topic_id
    by_id = fetch(("", 0, 0), topic_ids={"": topic_id}, version=13)
    client.ask(by_id, 13)
    client.ask(metadata(["t"]), 12)
    client.ask(by_id, 13)
    rows = rows_of(bench.entries)
    assert of(rows["partitions"], "topic", "topic_id") == [(None, topic_id.hex()), ("t", topic_id.hex())]


@pytest.mark.parametrize("cut", [0, 3, 9, 20])
def test_undecodable_request_gives_a_row_with_the_reason_of_the_failure(bench: Bench, cut: int) -> None:
    bench.cluster.connect(client_id="c").ask(produce("t", batch(b"x")), 9)
    [exchange] = bench.exchanges
    rows = rows_of([exchange._replace(request=exchange.request[:cut])])
    [request] = rows["requests"]
    assert request["problem"] and request["bytes_in"] == exchange.request_bytes and request["seq"] == exchange.seq
    assert rows["partitions"] == rows["batches"] == []
    assert request["api"] == ("Produce" if cut == 20 else None)


def test_undecodable_response_gives_a_row_with_the_request_fields(bench: Bench) -> None:
    bench.cluster.connect().ask(produce("t", batch(b"x")), 9)
    [exchange] = bench.exchanges
    rows = rows_of([exchange._replace(response=exchange.response[:-3])])
    assert rows["requests"][0]["problem"]
    assert of(rows["partitions"], "topic", "records", "base_offset") == [("t", 1, None)]


def test_request_row_has_a_problem_text_for_a_wrong_correlation_id_or_an_unknown_api(bench: Bench) -> None:
    bench.cluster.connect().ask(metadata(), 9)
    [exchange] = bench.exchanges
    other = exchange._replace(response=(99).to_bytes(4, "big") + exchange.response[4:])
    unknown = exchange._replace(request=(999).to_bytes(2, "big") + exchange.request[2:])
    first, second = rows_of([other, unknown])["requests"]
    assert first["problem"] == "the correlation id of the response is 99" and first["correlation_id"] == 1
    assert second["problem"]


def test_request_row_reports_a_response_that_has_a_different_correlation_id(bench: Bench) -> None:
    client = bench.cluster.connect()
    client.ask(metadata(), 9)
    client.ask(produce("t", batch(b"x")), 9)
    exchange, others = bench.exchanges
    [row] = rows_of([exchange._replace(response=others.response)])["requests"]
    assert row["problem"] == "the correlation id of the response is 2"


def test_row_of_a_request_with_an_unsupported_version_says_why_no_response_was_sent(
    bench: Bench,
) -> None:
    for key, version in ((3, 99), (999, 0), (18, 99)):
        frame = struct.pack(">hhih1sb", key, version, 7, 1, b"x", 0)
        client = bench.cluster.connect()
        client.expect(7, ApiKey.API_VERSIONS, 0)
        client.send_bytes(struct.pack(">i", len(frame)) + frame)
    requests = rows_of(bench.entries)["requests"]
    assert of(requests, "api", "api_version", "client_id", "has_response", "partial", "error") == [
        ("Metadata", 99, "x", False, True, None),
        (None, None, None, False, True, None),
        ("ApiVersions", 99, "x", True, False, 35),
    ]
    assert [row["problem"] for row in requests[:2]] == [
        "this broker does not serve version 99 of API key 3; `kafkaproto apis` lists the keys and versions",
        "this broker does not serve version 0 of API key 999; `kafkaproto apis` lists the keys and versions",
    ]


def test_row_of_a_trace_event_contains_all_fields_of_the_event() -> None:
    facts = {"seq": 5, "clock_ms": 1_700_003_600_000, "at_ns": 17, "broker": 2, "peer": "10.0.0.1", "more": [1, 2]}
    [row] = rows_of([Event("opened", facts)])["events"]
    assert of([row], "seq", "clock_ms", "at_ns", "broker", "kind", "hour") == [
        (5, 1_700_003_600_000, 17, 2, "opened", "2023-11-14T23")
    ]
    assert json.loads(row["facts"]) == {"peer": "10.0.0.1", "more": [1, 2]}
    # Without a broker clock the monotonic clock gives the hour.
    [row] = rows_of([Event("dropped", {"at_ns": 3_600_000_000_000})])["events"]
    assert row["hour"] == "2023-11-14T23"


@pytest.mark.parametrize("version", [0, 1, 2, 3])
@pytest.mark.parametrize("compression", [Compression.NONE, Compression.GZIP])
def test_rows_of_a_down_converted_fetch_contain_the_offsets_of_the_messages(
    bench: Bench, version: int, compression: Compression
) -> None:
    client = bench.cluster.connect(client_id="p")
    for count in (1, 2):
        data = build_batch(
            [NewRecord(b"v" * 50, b"k", 1_700_000_000_000) for _ in range(count)], compression=compression
        )
        client.ask(produce("t", data), 9)
    response = client.ask(fetch(("t", 0, 0), max_wait_ms=0), version)
    assert response.responses[0].partitions[0].records[16] < 2
    tables = rows_of(bench.entries)
    [fetch_row] = [row for row in tables["partitions"] if row["api"] == "Fetch"]
    assert (fetch_row["base_offset"], fetch_row["next_offset"], fetch_row["batches"]) == (0, 3, 0)
    read = [row for row in tables["batches"] if row["api"] == "Fetch"]
    singly = [(offset, offset, 1) for offset in range(3)]
    assert of(read, "base_offset", "last_offset", "count") == (
        singly if compression == Compression.NONE else [(0, 0, 1), (1, 2, 2)]
    )
    assert {(row["producer_id"], row["base_sequence"], row["crc"], row["codec"]) for row in read} == {
        (-1, -1, None, compression)
    }
    [request] = [row for row in tables["requests"] if row["api"] == "Fetch"]
    assert request["more"] is False and request["first_batch_bytes"] is None and request["problem"] is None
