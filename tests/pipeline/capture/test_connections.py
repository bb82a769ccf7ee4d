"""Incomplete packet captures: available requests become rows, gaps are reported, and nothing raises an exception."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaproto.frame import frame
from kafkaproto.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kafkaproto.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafkaproto.pipeline.capture import job as capture_job
from kafkaproto.pipeline.capture.connections import CAPTURE_ENDS, DirectedSegment, Endpoint, Pair
from kafkaproto.pipeline.capture.conversation import NO_RESPONSE
from kafkaproto.pipeline.capture.link import segment_of
from kafkaproto.pipeline.capture.reading import ConnectionRows
from kafkaproto.pipeline.capture.stream import Stamp
from kafkaproto.pipeline.sources import batches, runs_of
from kafkaproto.pipeline.trace import tables as job
from kafkaproto.pipeline.trace.runs import Run
from kafkaproto.trace.pcap import RST, file_header, record
from tests.support.pipeline.exchanges import (
    TOPIC_ID,
    add_exchanges,
    fetched,
    named,
    produced,
    request,
    response,
    versions,
)
from tests.support.pipeline.tables import rows
from tests.support.pipeline.wire import CLIENT, SERVER, Line, Wire

Row = dict[str, Any]


BuildTables = Callable[..., dict[str, list[Row]]]


@pytest.fixture
def build_tables(tmp_path: Path) -> BuildTables:
    """Return a function that builds the tables of a `Wire`."""

    def make(wire: Wire, snap_bytes: int = 1 << 18, ports: tuple[int, ...] = ()) -> dict[str, list[Row]]:
        path = wire.write(tmp_path / "a.pcap", snap_bytes)
        _, notices = job.build(path, tmp_path / "out", job.without_spark, ports)
        assert notices == []
        return {table: rows(tmp_path / "out", table) for table in ("requests", "partitions", "batches", "events")}

    return make


def events(tables: dict[str, list[Row]], kind: str) -> list[Row]:
    return [json.loads(row["facts"]) for row in tables["events"] if row["kind"] == kind]


def numbers(tables: dict[str, list[Row]]) -> list[int]:
    return [row["correlation_id"] for row in tables["requests"]]


def test_topic_name_of_a_captured_fetch_is_found_in_metadata_of_another_connection(build_tables: BuildTables) -> None:
    wire = Wire()
    add_exchanges(wire.connect(40_000), versions(1), fetched(2))
    add_exchanges(wire.connect(40_001), named(1))
    add_exchanges(wire.connect(40_002, six=True), versions(7))
    tables = build_tables(wire)
    assert [(row["topic"], row["topic_id"]) for row in tables["partitions"]] == [("t", TOPIC_ID.hex())]
    assert [row["topic"] for row in tables["batches"]] == ["t"]
    assert [row["broker"] for row in tables["requests"]] == [3, 3, 3, -1]
    assert [event["server"] for event in events(tables, "opened")] == ["127.0.0.1:9092"] * 2 + ["[::1]:9092"]


def test_packet_capture_tables_list_the_api_version_ranges_that_brokers_offered(build_tables: BuildTables) -> None:
    wire = Wire()
    add_exchanges(wire.connect(40_000), versions(1, (0, 0, 9), (1, 4, 16)))
    add_exchanges(wire.connect(40_001), versions(1, (0, 3, 11)))
    [meta] = events(build_tables(wire), "meta")
    assert meta["advertised"] == {"0": [0, 11], "1": [4, 16]}


@pytest.mark.parametrize("shaken", [True, False])
def test_captured_api_versions_response_with_unsupported_version_error_is_read_as_v0(
    build_tables: BuildTables, shaken: bool
) -> None:
    """The rule is from KIP-511. The rule also holds if the capture begins with these packets."""
    wire = Wire()
    old = response(ApiVersionsResponse(35, [ApiVersion(18, 0, 3)]), 18, 0, 1)
    add_exchanges(
        wire.connect(shaken=shaken), (request(ApiVersionsRequest("me", "1"), 18, 4, 1), old), versions(2, (18, 0, 3))
    )
    api_rows = [(row["api_version"], row["error"], row["problem"]) for row in build_tables(wire)["requests"]]
    assert api_rows == [(4, 35, None), (2, 0, None)]


def test_rows_of_packet_captures_have_nulls_in_columns_that_only_brokers_can_fill(build_tables: BuildTables) -> None:
    wire = Wire()
    add_exchanges(wire.connect(), versions(1))
    [row] = build_tables(wire)["requests"]
    assert row["clock_ms"] is row["held"] is row["applied_throttle_ms"] is None
    assert row["received_ns"] < row["ready_ns"] <= row["sent_ns"]


@pytest.mark.parametrize("first", [CLIENT, SERVER])
def test_packet_capture_that_starts_inside_a_small_frame_is_read_from_the_next_frame(
    build_tables: BuildTables, first: int
) -> None:
    wire = Wire()
    line = wire.connect(shaken=False)
    whole = [named(5), produced(6), fetched(7), versions(8)]
    if first == CLIENT:
        line.says(CLIENT, produced(4, 5000)[0][2000:])
    line.says(SERVER, fetched(4, 5000)[1][2000:])
    add_exchanges(line, *whole)
    tables = build_tables(wire)
    assert numbers(tables) == [5, 6, 7, 8] and [row["problem"] for row in tables["requests"]] == [None] * 4
    [opened] = events(tables, "opened")
    assert opened["whole"] is False and opened["port"] == 40_000


@pytest.mark.parametrize(
    ("shaken", "request_bytes", "answered"),
    [(False, 0, 200_000), (False, 200_000, 0), (False, 200_000, 200_000), (True, 200_000, 200_000)],
)
@pytest.mark.parametrize("ports", [(), (9092,)])
def test_packet_capture_that_starts_inside_a_large_frame_is_read_from_the_next_frame(
    build_tables: BuildTables, shaken: bool, request_bytes: int, answered: int, ports: tuple[int, ...]
) -> None:
    """The frame exceeds what is buffered until client and server are known. With a handshake, the bytes in between were not captured."""
    wire = Wire()
    line = wire.connect(shaken=shaken)
    if shaken:
        line.lose(CLIENT, versions(3)[0])
        line.lose(SERVER, versions(3)[1])
    if request_bytes:
        line.says(CLIENT, produced(4, 2 * request_bytes)[0][request_bytes:])
    if answered:
        line.says(SERVER, fetched(4, 2 * answered)[1][answered:])
    add_exchanges(line, named(5), produced(6), fetched(7, 400_000), versions(8))
    tables = build_tables(wire, ports=ports)
    assert numbers(tables) == [5, 6, 7, 8] and [row["problem"] for row in tables["requests"]] == [None] * 4
    assert not events(tables, "left_out")


@pytest.mark.parametrize("size", [3_000, 200_000])
@pytest.mark.parametrize("ports", [(), (9092,)])
def test_client_and_server_are_identified_in_packets_that_start_with_a_response(
    build_tables: BuildTables, size: int, ports: tuple[int, ...]
) -> None:
    """A response has its correlation id where a request has its API key and version: a low id looks like Produce."""
    wire = Wire()
    line = wire.connect(shaken=False)
    line.says(SERVER, fetched(4, size)[1])
    add_exchanges(line, fetched(5, size), produced(6, size), produced(7, size), versions(8), fetched(9, size))
    tables = build_tables(wire, ports=ports)
    assert numbers(tables) == [5, 6, 7, 8, 9] and [row["problem"] for row in tables["requests"]] == [None] * 5
    assert [event["port"] for event in events(tables, "opened")] == [40_000]


def test_client_is_identified_in_a_packet_capture_that_starts_with_large_requests(build_tables: BuildTables) -> None:
    wire = Wire()
    line = wire.connect(shaken=False)
    add_exchanges(line, *(produced(n, 200_000) for n in range(4, 8)))
    tables = build_tables(wire)
    assert numbers(tables) == [5, 6, 7] and [row["problem"] for row in tables["requests"]] == [None] * 3


@pytest.mark.parametrize("ports", [(), (81,)])
def test_mid_stream_packet_capture_of_another_protocol_yields_no_requests(
    build_tables: BuildTables, ports: tuple[int, ...]
) -> None:
    """The connection is reported as unreadable only if the user has named the port as a broker's."""
    wire = Wire()
    middle = wire.connect(server=81, shaken=False)
    for _ in range(20):
        middle.says(CLIENT, b"more\r\n")
        middle.says(SERVER, wire.random.randbytes(20_000))
    packets = len(wire.packets)
    add_exchanges(wire.connect(40_001, server=81), versions(1))
    tables = build_tables(wire, ports=ports)
    assert numbers(tables) == [1]
    assert events(tables, "left_out") == [{"packets": {"not Kafka": packets}}]
    assert [event["why"] for event in events(tables, "unreadable")] == ["this is not how a request begins"] * len(ports)


def test_packets_lost_inside_a_kafka_frame_make_only_that_frame_incomplete(build_tables: BuildTables) -> None:
    wire = Wire()
    line = wire.connect()
    request_frame, response_frame = produced(2, 5000)
    add_exchanges(line, versions(1))
    line.says(CLIENT, request_frame[:2000])
    line.lose(CLIENT, request_frame[2000:3000])
    line.says(CLIENT, request_frame[3000:])
    line.says(SERVER, response_frame)
    request_frame, response_frame = fetched(3, 5000)
    line.says(CLIENT, request_frame)
    line.says(SERVER, response_frame[:2000])
    line.lose(SERVER, response_frame[2000:3000])
    line.says(SERVER, response_frame[3000:])
    add_exchanges(line, *(versions(n) for n in range(4, 40)))
    line.close()
    tables = build_tables(wire)
    assert numbers(tables) == list(range(1, 40))
    problems = {row["correlation_id"]: row["problem"] for row in tables["requests"] if row["problem"]}
    assert [row["correlation_id"] for row in tables["requests"] if row["partial"]] == [2, 3]
    assert set(problems) == {2, 3} and all("packets are missing" in why for why in problems.values())
    assert [(event["of_stream"], event["bytes"]) for event in events(tables, "lost")] == [
        ("requests", 1000),
        ("answers", 1000),
    ]
    assert [row["bytes_in"] for row in tables["requests"]][1] == len(produced(2, 5000)[0]) - 4


def test_decoding_resumes_at_the_next_kafka_frame_after_lost_packets(build_tables: BuildTables) -> None:
    wire = Wire(largest=100)
    line = wire.connect()
    add_exchanges(line, versions(1))
    requests, responses = zip(*(produced(n, 300) for n in (2, 3, 4)), strict=True)
    line.says(CLIENT, requests[0][:200])
    line.lose(CLIENT, (requests[0] + requests[1] + requests[2])[200 : len(requests[0]) + 150])
    line.says(CLIENT, requests[1][150:] + requests[2])
    line.says(SERVER, b"".join(responses))
    add_exchanges(line, *(produced(n, 300) for n in range(5, 50)))
    tables = build_tables(wire)
    assert numbers(tables) == [1, 2, *range(4, 50)]
    assert [row["correlation_id"] for row in tables["requests"] if row["problem"]] == [2]
    assert [event["why"] for event in events(tables, "unreadable")] == [
        "a response whose request is not in the capture"
    ]


OTHERS = "the correlation id of the response is {}"


def test_request_row_of_a_packet_capture_reports_a_response_that_came_out_of_order(build_tables: BuildTables) -> None:
    """Nothing is missing, so each response belongs to the oldest request. Responses without a request are only reported."""
    wire = Wire()
    line = wire.connect()
    add_exchanges(line, versions(1))
    line.says(CLIENT, named(2)[0] + fetched(3)[0] + produced(4, acks=0)[0])
    line.says(SERVER, fetched(3)[1] + named(2)[1])
    add_exchanges(line, (named(5)[0], named(99)[1]), named(6))
    line.says(SERVER, named(98)[1])
    add_exchanges(line, named(7), named(8))
    line.close()
    tables = build_tables(wire)
    problems = {row["correlation_id"]: row["problem"] for row in tables["requests"]}
    others = {2: OTHERS.format(3), 3: OTHERS.format(2), 5: OTHERS.format(99)}
    assert problems == {number: others.get(number) for number in range(1, 9)}
    assert [row["has_response"] for row in tables["requests"]] == [row["acks"] is None for row in tables["requests"]]
    assert not any(row["partial"] for row in tables["requests"]) and not events(tables, "problem")
    assert [event["bytes"] for event in events(tables, "unreadable")] == [len(named(98)[1]) - 4]


@pytest.mark.parametrize(
    "where", ["in mid-stream", "behind a hole", "behind what cannot be read", "behind half a produce"]
)
def test_captured_responses_after_a_gap_are_matched_by_correlation_id(build_tables: BuildTables, where: str) -> None:
    wire = Wire()
    line = wire.connect(shaken=where != "in mid-stream")
    numbered = produced(3) if where == "behind half a produce" else versions(3)
    if where == "in mid-stream":
        line.says(CLIENT, versions(3)[0])
    else:
        add_exchanges(line, versions(1))
        if where == "behind a hole":
            line.lose(CLIENT, versions(2)[0])
        elif where == "behind what cannot be read":
            line.says(CLIENT, frame(b"\x7f\xff" + bytes(30)))
        line.says(CLIENT, numbered[0])
    line.says(CLIENT, b"".join(versions(n)[0] for n in (4, 5)))
    line.says(SERVER, versions(2)[1] + versions(4)[1] + versions(5)[1])
    add_exchanges(line, *(versions(n) for n in range(6, 40)))
    line.close()
    tables = build_tables(wire, 150 if where == "behind half a produce" else 1 << 18)
    problems = {row["correlation_id"]: row["problem"] for row in tables["requests"] if row["problem"]}
    assert list(problems) == [3] and (problems[3] == NO_RESPONSE or "only the beginning" in problems[3])
    assert numbers(tables)[-36:] == list(range(4, 40))
    unpaired = [
        event
        for event in events(tables, "unreadable")
        if event["why"] == "a response whose request is not in the capture"
    ]
    assert len(unpaired) == (where != "in mid-stream"), "there it is skipped, because no request waits for it"


def test_captured_request_whose_response_was_lost_has_false_in_column_has_response(build_tables: BuildTables) -> None:
    wire = Wire()
    line = wire.connect()
    add_exchanges(line, versions(1))
    line.says(CLIENT, versions(2)[0] + versions(3)[0])
    line.lose(SERVER, versions(2)[1])
    line.says(SERVER, versions(3)[1])
    add_exchanges(line, *(versions(n) for n in range(4, 40)))
    line.says(CLIENT, versions(40)[0])
    tables = build_tables(wire)
    assert numbers(tables) == list(range(1, 41))
    assert {row["correlation_id"]: row["problem"] for row in tables["requests"] if row["problem"]} == {
        2: NO_RESPONSE,
        40: NO_RESPONSE,
    }
    assert [row["has_response"] for row in tables["requests"]] == [True, False, *[True] * 37, False]


@pytest.mark.parametrize("snap_bytes", [54, 70, 96, 200])
def test_row_of_a_request_in_truncated_packets_has_the_full_size_and_a_problem_text(
    build_tables: BuildTables, snap_bytes: int
) -> None:
    wire = Wire(largest=65_000)
    line = wire.connect()
    add_exchanges(line, versions(1), produced(2), fetched(3), versions(4))
    line.close()
    tables = build_tables(wire, snap_bytes)
    assert numbers(tables) == [1, 2, 3, 4]
    cut_short = [row for row in tables["requests"] if row["api"] in ("Produce", "Fetch")]
    assert len(cut_short) == 2 and all("only the beginning of packets" in row["problem"] for row in cut_short)
    assert [row["bytes_in"] for row in tables["requests"]][1] == len(produced(2)[0]) - 4


def test_row_of_a_captured_produce_with_acks_0_has_no_response_and_no_problem_text(build_tables: BuildTables) -> None:
    wire = Wire()
    line = wire.connect()
    line.says(CLIENT, produced(1, acks=0)[0] + versions(2)[0])
    line.says(SERVER, versions(2)[1])
    tables = build_tables(wire)
    assert [(row["has_response"], row["problem"], row["acks"]) for row in tables["requests"]] == [
        (False, None, 0),
        (True, None, None),
    ]


def test_captured_tls_connection_is_reported_as_unreadable(build_tables: BuildTables) -> None:
    wire = Wire()
    line = wire.connect(server=9093)
    line.says(CLIENT, b"\x16\x03\x01\x02\x00" + bytes(512))
    line.says(SERVER, b"\x16\x03\x03\x00\x40" + bytes(64))
    add_exchanges(wire.connect(40_001), versions(1))
    tables = build_tables(wire)
    [event] = events(tables, "unreadable")
    assert (event["why"], event["server"]) == ("TLS", "127.0.0.1:9093") and numbers(tables) == [1]
    assert events(tables, "left_out")[0]["packets"]["TLS"] >= 5


@pytest.mark.parametrize("before", [[], [versions(1)]])
def test_packet_capture_tables_contain_no_sasl_tokens_but_all_kafka_requests(
    build_tables: BuildTables, before: list[tuple[bytes, bytes]], tmp_path: Path
) -> None:
    wire = Wire()
    line = wire.connect()
    handshake = (
        request(SaslHandshakeRequest("PLAIN"), 17, 0, 2),
        response(SaslHandshakeResponse(0, ["PLAIN"]), 17, 0, 2),
    )
    add_exchanges(line, *before, handshake, (frame(b"\0user\0secret"), frame(b"")), versions(3), produced(4))
    tables = build_tables(wire)
    assert numbers(tables) == [*([1] if before else []), 2, 3, 4]
    assert [row["problem"] for row in tables["requests"]] == [None] * len(tables["requests"])
    assert not any(b"secret" in path.read_bytes() for path in (tmp_path / "out").rglob("*.parquet"))


def test_event_row_of_a_packet_capture_contains_the_number_of_non_kafka_packets(build_tables: BuildTables) -> None:
    wire = Wire()
    web = wire.connect(server=80)
    web.says(CLIENT, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 3)
    web.says(SERVER, b"HTTP/1.1 200 OK\r\n\r\n" * 100)
    web.close()
    shell = wire.connect(40_001, server=22)
    shell.says(SERVER, b"SSH-2.0-OpenSSH\r\n")
    shell.says(CLIENT, b"SSH-2.0-OpenSSH\r\n")
    middle = wire.connect(40_002, server=81, shaken=False)
    middle.says(SERVER, bytes(range(256)) * 600)
    before = len(wire.packets)
    add_exchanges(wire.connect(40_003), versions(1))
    tables = build_tables(wire)
    assert numbers(tables) == [1] and len(events(tables, "opened")) == 1
    [left_out] = events(tables, "left_out")
    assert left_out["packets"] == {"not Kafka": before}


def test_tables_of_a_packet_capture_contain_only_requests_to_the_given_port(build_tables: BuildTables) -> None:
    wire = Wire()
    add_exchanges(wire.connect(40_000), versions(1))
    add_exchanges(wire.connect(40_001, server=9093), versions(2))
    tables = build_tables(wire, ports=(9093,))
    assert numbers(tables) == [2]
    assert set(events(tables, "left_out")[0]["packets"]) == {"other port"}


@pytest.mark.parametrize("ends", [lambda line: line.close(), lambda line: line.packet(SERVER, RST), lambda line: None])
def test_new_tcp_handshake_between_captured_addresses_is_a_new_connection(
    build_tables: BuildTables, ends: Callable[[Line], None]
) -> None:
    wire = Wire()
    line = wire.connect()
    add_exchanges(line, versions(1))
    ends(line)
    add_exchanges(wire.connect(first=(0xFFFFFFF0, 5)), versions(1), produced(2), fetched(3))
    tables = build_tables(wire)
    assert numbers(tables) == [1, 1, 2, 3]
    opened = [event["connection"] for event in events(tables, "opened")]
    assert [row["conn"] for row in tables["requests"]] == [opened[0], *[opened[1]] * 3] and opened[0] < opened[1]
    assert CAPTURE_ENDS not in [event["why"] for event in events(tables, "closed")]


def test_trace_entries_made_from_a_packet_capture_have_unique_sequence_numbers(build_tables: BuildTables) -> None:
    wire = Wire(largest=60_000)
    for port in range(5):
        line = wire.connect(40_000 + port)
        line.says(CLIENT, b"".join(versions(n)[0] for n in range(50)))
        line.says(SERVER, b"".join(versions(n)[1] for n in range(50)))
    tables = build_tables(wire)
    seqs = [row["seq"] for row in tables["requests"]] + [row["seq"] for row in tables["events"] if row["seq"]]
    assert len(tables["requests"]) == 250 and len(seqs) == len(set(seqs))


def test_job_that_makes_tables_of_captures_prints_request_counts_and_file_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wire = Wire()
    add_exchanges(wire.connect(), versions(1))
    folder = tmp_path / "in"
    folder.mkdir()
    good = wire.write(folder / "good.pcap")
    torn = wire.write(folder / "torn.pcap0")
    torn.write_bytes(torn.read_bytes()[:-1])
    (folder / "bad.pcapng").write_bytes(b"no capture")
    (folder / "notes.txt").write_text("mine")
    assert job.main([str(folder), str(tmp_path / "out"), "--without-spark"]) == 2
    printed = capsys.readouterr()
    assert (
        "bad.pcapng is not a capture file (pcap or pcapng)" in printed.err
        and f"{torn}: " in printed.err
        and "notes" not in printed.err
    )
    assert "run good.pcap: 1 request," in printed.out and "run torn.pcap0: 1 request," in printed.out
    assert job.main([str(good), str(tmp_path / "out"), "--without-spark", "--port", "9092"]) == 0
    assert capsys.readouterr().out == "nothing is new\n"
    assert job.main([str(folder / "bad.pcapng"), str(tmp_path / "out"), "--without-spark"]) == 2
    assert capsys.readouterr().out == "nothing new could be read\n"


def test_packet_capture_reader_needs_nearly_equal_memory_for_10_times_the_traffic() -> None:
    """Ten times the traffic must need no more memory."""

    def held(rounds: int) -> int:
        wire = Wire(largest=60_000)
        line = wire.connect()
        run = Run("r", {"wall_ms": 0, "at_ns": 0, "ports": []}, ("",), (0,), True)
        tabled = ConnectionRows(run)
        pair: Pair | None = None
        exchanges = [named(1), produced(2, 20_000), fetched(3, 20_000)]
        tracemalloc.start()
        try:
            for _ in range(rounds):
                add_exchanges(line, *exchanges)
                for number, (at_ns, packet) in enumerate(wire.packets, 1):
                    segment = segment_of(101, packet, len(packet))
                    source, to = Endpoint(segment.source, segment.source_port), Endpoint(segment.to, segment.to_port)
                    by = int(to < source)
                    pair = pair or Pair((to, source) if by else (source, to), frozenset())
                    stamp = Stamp(number, at_ns)
                    directed = DirectedSegment(
                        stamp, by, segment.sequence, segment.acknowledged, segment.flags, segment.data, segment.missing
                    )
                    for notice in pair.take(directed):
                        list(tabled.rows(notice))
                wire.packets.clear()
            gc.collect()  # until then Python keeps freed tuples for reuse
            return tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()

    held(10)  # imports and compiles everything once
    assert held(200) < 1.5 * held(20)


def bytes_of_a_capture() -> bytes:
    wire = Wire(5)
    line = wire.connect()
    add_exchanges(line, versions(1), named(2), produced(3), fetched(4))
    line.says(CLIENT, produced(5, acks=0)[0])
    line.close()
    wire.disorder()
    return file_header() + b"".join(record(*packet) for packet in wire.packets)


WHOLE = bytes_of_a_capture()


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(24, len(WHOLE) - 1), st.integers(0, 255)), max_size=12), st.integers(0, len(WHOLE))
)
def test_reading_a_damaged_packet_capture_never_raises_an_exception(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]], end: int
) -> None:
    data = bytearray(WHOLE)
    for at, value in changes:
        data[at] = value
    folder = tmp_path_factory.getbasetemp() / "mutated"
    folder.mkdir(exist_ok=True)
    path = folder / "a.pcap"
    path.write_bytes(data[: end if changes else len(data)])
    runs, notices = runs_of(path)
    assert len(runs) + len(notices) == 1
    for run in runs:
        assert [table for table, _ in batches(run)]


def test_packet_capture_reader_passes_growing_byte_counts_to_its_progress_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture_job, "ROWS_PER_BATCH", 10)
    wire = Wire()
    add_exchanges(wire.connect(), *(versions(n) for n in range(50)))
    wire.write(tmp_path / "a.pcap")
    [run], _ = runs_of(tmp_path)
    noted: list[int] = []
    assert list(capture_job.packets_of(0, run, noted.append))
    assert len(noted) > 5 and noted == sorted(noted) and noted[-1] == sum(run.sizes)
