"""Captures that have not everything: what is there comes out, what is not is told, and nothing crashes."""

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
from kafkaproto.pipeline.capture.connections import CAPTURE_ENDS, End, Pair, Seen
from kafkaproto.pipeline.capture.conversation import NO_ANSWER
from kafkaproto.pipeline.capture.link import segment_of
from kafkaproto.pipeline.capture.reading import Tabled
from kafkaproto.pipeline.capture.stream import Stamp
from kafkaproto.pipeline.sources import batches, runs_of
from kafkaproto.pipeline.trace import tables as job
from kafkaproto.pipeline.trace.runs import Run
from kafkaproto.trace.pcap import RST, file_header, record
from tests.support.pipeline.exchanges import TOPIC_ID, fetched, named, produced, request, response, talk, versions
from tests.support.pipeline.tables import rows
from tests.support.pipeline.wire import CLIENT, SERVER, Line, Wire

Row = dict[str, Any]


Made = Callable[..., dict[str, list[Row]]]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """Tables of a wire."""

    def make(wire: Wire, snap_bytes: int = 1 << 18, ports: tuple[int, ...] = ()) -> dict[str, list[Row]]:
        path = wire.write(tmp_path / "a.pcap", snap_bytes)
        _, told = job.build(path, tmp_path / "out", job.without_spark, ports)
        assert told == []
        return {table: rows(tmp_path / "out", table) for table in ("requests", "partitions", "batches", "events")}

    return make


def events(tables: dict[str, list[Row]], kind: str) -> list[Row]:
    return [json.loads(row["facts"]) for row in tables["events"] if row["kind"] == kind]


def numbers(tables: dict[str, list[Row]]) -> list[int]:
    return [row["correlation_id"] for row in tables["requests"]]


def test_brokers_and_topics_are_named_by_whatever_answer_tells_them_also_later_and_elsewhere(made: Made) -> None:
    wire = Wire()
    talk(wire.connect(40_000), versions(1), fetched(2))
    talk(wire.connect(40_001), named(1))
    talk(wire.connect(40_002, six=True), versions(7))
    tables = made(wire)
    assert [(row["topic"], row["topic_id"]) for row in tables["partitions"]] == [("t", TOPIC_ID.hex())]
    assert [row["topic"] for row in tables["batches"]] == ["t"]
    assert [row["broker"] for row in tables["requests"]] == [3, 3, 3, -1]
    assert [one["server"] for one in events(tables, "opened")] == ["127.0.0.1:9092"] * 2 + ["[::1]:9092"]


def test_what_brokers_offer_is_told_of_the_whole_capture(made: Made) -> None:
    wire = Wire()
    talk(wire.connect(40_000), versions(1, (0, 0, 9), (1, 4, 16)))
    talk(wire.connect(40_001), versions(1, (0, 3, 11)))
    [meta] = events(made(wire), "meta")
    assert meta["advertised"] == {"0": [0, 11], "1": [4, 16]}


@pytest.mark.parametrize("shaken", [True, False])
def test_versions_that_a_broker_does_not_tell_in_the_asked_version_are_read_in_version_0(
    made: Made, shaken: bool
) -> None:
    """KIP-511, also where the capture begins with them."""
    wire = Wire()
    old = response(ApiVersionsResponse(35, [ApiVersion(18, 0, 3)]), 18, 0, 1)
    talk(wire.connect(shaken=shaken), (request(ApiVersionsRequest("me", "1"), 18, 4, 1), old), versions(2, (18, 0, 3)))
    of = [(row["api_version"], row["error"], row["trouble"]) for row in made(wire)["requests"]]
    assert of == [(4, 35, None), (2, 0, None)]


def test_what_only_a_broker_knows_is_null(made: Made) -> None:
    wire = Wire()
    talk(wire.connect(), versions(1))
    [row] = made(wire)["requests"]
    assert row["clock_ms"] is row["held"] is row["decided_ms"] is None
    assert row["received_ns"] < row["ready_ns"] <= row["sent_ns"]


@pytest.mark.parametrize("first", [CLIENT, SERVER])
def test_a_start_in_mid_stream_finds_the_next_frame(made: Made, first: int) -> None:
    wire = Wire()
    line = wire.connect(shaken=False)
    whole = [named(5), produced(6), fetched(7), versions(8)]
    if first == CLIENT:
        line.says(CLIENT, produced(4, 5000)[0][2000:])
    line.says(SERVER, fetched(4, 5000)[1][2000:])
    talk(line, *whole)
    tables = made(wire)
    assert numbers(tables) == [5, 6, 7, 8] and [row["trouble"] for row in tables["requests"]] == [None] * 4
    [opened] = events(tables, "opened")
    assert opened["whole"] is False and opened["port"] == 40_000


@pytest.mark.parametrize(
    ("shaken", "asked", "answered"),
    [(False, 0, 200_000), (False, 200_000, 0), (False, 200_000, 200_000), (True, 200_000, 200_000)],
)
@pytest.mark.parametrize("ports", [(), (9092,)])
def test_a_start_in_the_middle_of_a_large_frame_finds_the_next_one(
    made: Made, shaken: bool, asked: int, answered: int, ports: tuple[int, ...]
) -> None:
    """Much more of it comes than is held until it is known who is the client. With a handshake: what came between was not captured."""
    wire = Wire()
    line = wire.connect(shaken=shaken)
    if shaken:
        line.lose(CLIENT, versions(3)[0])
        line.lose(SERVER, versions(3)[1])
    if asked:
        line.says(CLIENT, produced(4, 2 * asked)[0][asked:])
    if answered:
        line.says(SERVER, fetched(4, 2 * answered)[1][answered:])
    talk(line, named(5), produced(6), fetched(7, 400_000), versions(8))
    tables = made(wire, ports=ports)
    assert numbers(tables) == [5, 6, 7, 8] and [row["trouble"] for row in tables["requests"]] == [None] * 4
    assert not events(tables, "left_out")


@pytest.mark.parametrize("size", [3_000, 200_000])
@pytest.mark.parametrize("ports", [(), (9092,)])
def test_a_start_with_an_answer_does_not_take_the_server_for_the_client(
    made: Made, size: int, ports: tuple[int, ...]
) -> None:
    """The correlation id of an answer stands where a request has its API key and version: a low one says Produce."""
    wire = Wire()
    line = wire.connect(shaken=False)
    line.says(SERVER, fetched(4, size)[1])
    talk(line, fetched(5, size), produced(6, size), produced(7, size), versions(8), fetched(9, size))
    tables = made(wire, ports=ports)
    assert numbers(tables) == [5, 6, 7, 8, 9] and [row["trouble"] for row in tables["requests"]] == [None] * 5
    assert [one["port"] for one in events(tables, "opened")] == [40_000]


def test_a_start_among_requests_too_large_to_be_held_knows_the_client_by_the_second(made: Made) -> None:
    wire = Wire()
    line = wire.connect(shaken=False)
    talk(line, *(produced(n, 200_000) for n in range(4, 8)))
    tables = made(wire)
    assert numbers(tables) == [5, 6, 7] and [row["trouble"] for row in tables["requests"]] == [None] * 3


@pytest.mark.parametrize("ports", [(), (81,)])
def test_a_start_in_the_middle_of_what_is_no_kafka_finds_nothing(made: Made, ports: tuple[int, ...]) -> None:
    """It is told as unreadable where somebody has said that this is a broker's port."""
    wire = Wire()
    middle = wire.connect(server=81, shaken=False)
    for _ in range(20):
        middle.says(CLIENT, b"more\r\n")
        middle.says(SERVER, wire.random.randbytes(20_000))
    packets = len(wire.packets)
    talk(wire.connect(40_001, server=81), versions(1))
    tables = made(wire, ports=ports)
    assert numbers(tables) == [1]
    assert events(tables, "left_out") == [{"packets": {"not Kafka": packets}}]
    assert [one["why"] for one in events(tables, "unreadable")] == ["this is not how a request begins"] * len(ports)


def test_lost_packets_inside_a_frame_cost_that_frame_and_no_other(made: Made) -> None:
    wire = Wire()
    line = wire.connect()
    asked, answer = produced(2, 5000)
    talk(line, versions(1))
    line.says(CLIENT, asked[:2000])
    line.lose(CLIENT, asked[2000:3000])
    line.says(CLIENT, asked[3000:])
    line.says(SERVER, answer)
    asked, answer = fetched(3, 5000)
    line.says(CLIENT, asked)
    line.says(SERVER, answer[:2000])
    line.lose(SERVER, answer[2000:3000])
    line.says(SERVER, answer[3000:])
    talk(line, *(versions(n) for n in range(4, 40)))
    line.close()
    tables = made(wire)
    assert numbers(tables) == list(range(1, 40))
    troubles = {row["correlation_id"]: row["trouble"] for row in tables["requests"] if row["trouble"]}
    assert [row["correlation_id"] for row in tables["requests"] if row["partial"]] == [2, 3]
    assert set(troubles) == {2, 3} and all("packets are missing" in why for why in troubles.values())
    assert [(one["of_stream"], one["bytes"]) for one in events(tables, "lost")] == [
        ("requests", 1000),
        ("answers", 1000),
    ]
    assert [row["bytes_in"] for row in tables["requests"]][1] == len(produced(2, 5000)[0]) - 4


def test_lost_packets_with_the_beginnings_of_frames_are_followed_by_the_next_frame(made: Made) -> None:
    wire = Wire(largest=100)
    line = wire.connect()
    talk(line, versions(1))
    asked, answer = zip(*(produced(n, 300) for n in (2, 3, 4)), strict=True)
    line.says(CLIENT, asked[0][:200])
    line.lose(CLIENT, (asked[0] + asked[1] + asked[2])[200 : len(asked[0]) + 150])
    line.says(CLIENT, asked[1][150:] + asked[2])
    line.says(SERVER, b"".join(answer))
    talk(line, *(produced(n, 300) for n in range(5, 50)))
    tables = made(wire)
    assert numbers(tables) == [1, 2, *range(4, 50)]
    assert [row["correlation_id"] for row in tables["requests"] if row["trouble"]] == [2]
    assert [one["why"] for one in events(tables, "unreadable")] == ["an answer whose request is not in the capture"]


OTHERS = "the answer's correlation id is {}"


def test_answers_that_are_exchanged_or_nobodys_are_told_as_others(made: Made) -> None:
    """Nothing is missing, so the next answer is that of the oldest request. What nobody waits for is told beside, and the rest is as it was."""
    wire = Wire()
    line = wire.connect()
    talk(line, versions(1))
    line.says(CLIENT, named(2)[0] + fetched(3)[0] + produced(4, acks=0)[0])
    line.says(SERVER, fetched(3)[1] + named(2)[1])
    talk(line, (named(5)[0], named(99)[1]), named(6))
    line.says(SERVER, named(98)[1])
    talk(line, named(7), named(8))
    line.close()
    tables = made(wire)
    troubles = {row["correlation_id"]: row["trouble"] for row in tables["requests"]}
    others = {2: OTHERS.format(3), 3: OTHERS.format(2), 5: OTHERS.format(99)}
    assert troubles == {number: others.get(number) for number in range(1, 9)}
    assert [row["answered"] for row in tables["requests"]] == [row["acks"] is None for row in tables["requests"]]
    assert not any(row["partial"] for row in tables["requests"]) and not events(tables, "trouble")
    assert [one["bytes"] for one in events(tables, "unreadable")] == [len(named(98)[1]) - 4]


@pytest.mark.parametrize(
    "where", ["in mid-stream", "behind a hole", "behind what cannot be read", "behind half a produce"]
)
def test_where_something_may_be_missing_an_answer_is_known_by_its_correlation_id(made: Made, where: str) -> None:
    wire = Wire()
    line = wire.connect(shaken=where != "in mid-stream")
    numbered = produced(3) if where == "behind half a produce" else versions(3)
    if where == "in mid-stream":
        line.says(CLIENT, versions(3)[0])
    else:
        talk(line, versions(1))
        if where == "behind a hole":
            line.lose(CLIENT, versions(2)[0])
        elif where == "behind what cannot be read":
            line.says(CLIENT, frame(b"\x7f\xff" + bytes(30)))
        line.says(CLIENT, numbered[0])
    line.says(CLIENT, b"".join(versions(n)[0] for n in (4, 5)))
    line.says(SERVER, versions(2)[1] + versions(4)[1] + versions(5)[1])
    talk(line, *(versions(n) for n in range(6, 40)))
    line.close()
    tables = made(wire, 150 if where == "behind half a produce" else 1 << 18)
    troubles = {row["correlation_id"]: row["trouble"] for row in tables["requests"] if row["trouble"]}
    assert list(troubles) == [3] and (troubles[3] == NO_ANSWER or "only the beginning" in troubles[3])
    assert numbers(tables)[-36:] == list(range(4, 40))
    unpaired = [
        one for one in events(tables, "unreadable") if one["why"] == "an answer whose request is not in the capture"
    ]
    assert len(unpaired) == (where != "in mid-stream"), "there it is passed over, as nobody waits for it"


def test_lost_answers_are_told_of_their_requests(made: Made) -> None:
    wire = Wire()
    line = wire.connect()
    talk(line, versions(1))
    line.says(CLIENT, versions(2)[0] + versions(3)[0])
    line.lose(SERVER, versions(2)[1])
    line.says(SERVER, versions(3)[1])
    talk(line, *(versions(n) for n in range(4, 40)))
    line.says(CLIENT, versions(40)[0])
    tables = made(wire)
    assert numbers(tables) == list(range(1, 41))
    assert {row["correlation_id"]: row["trouble"] for row in tables["requests"] if row["trouble"]} == {
        2: NO_ANSWER,
        40: NO_ANSWER,
    }
    assert [row["answered"] for row in tables["requests"]] == [True, False, *[True] * 37, False]


@pytest.mark.parametrize("snap_bytes", [54, 70, 96, 200])
def test_packets_that_are_cut_short_leave_rows_of_their_headers(made: Made, snap_bytes: int) -> None:
    wire = Wire(largest=65_000)
    line = wire.connect()
    talk(line, versions(1), produced(2), fetched(3), versions(4))
    line.close()
    tables = made(wire, snap_bytes)
    assert numbers(tables) == [1, 2, 3, 4]
    cut_short = [row for row in tables["requests"] if row["api"] in ("Produce", "Fetch")]
    assert len(cut_short) == 2 and all("only the beginning of packets" in row["trouble"] for row in cut_short)
    assert [row["bytes_in"] for row in tables["requests"]][1] == len(produced(2)[0]) - 4


def test_acks_0_has_no_answer_and_no_trouble(made: Made) -> None:
    wire = Wire()
    line = wire.connect()
    line.says(CLIENT, produced(1, acks=0)[0] + versions(2)[0])
    line.says(SERVER, versions(2)[1])
    tables = made(wire)
    assert [(row["answered"], row["trouble"], row["acks"]) for row in tables["requests"]] == [
        (False, None, 0),
        (True, None, None),
    ]


def test_tls_is_told_as_unreadable(made: Made) -> None:
    wire = Wire()
    line = wire.connect(server=9093)
    line.says(CLIENT, b"\x16\x03\x01\x02\x00" + bytes(512))
    line.says(SERVER, b"\x16\x03\x03\x00\x40" + bytes(64))
    talk(wire.connect(40_001), versions(1))
    tables = made(wire)
    [told] = events(tables, "unreadable")
    assert (told["why"], told["server"]) == ("TLS", "127.0.0.1:9093") and numbers(tables) == [1]
    assert events(tables, "left_out")[0]["packets"]["TLS"] >= 5


@pytest.mark.parametrize("before", [[], [versions(1)]])
def test_tokens_of_sasl_are_passed_over_and_never_kept(
    made: Made, before: list[tuple[bytes, bytes]], tmp_path: Path
) -> None:
    wire = Wire()
    line = wire.connect()
    handshake = (
        request(SaslHandshakeRequest("PLAIN"), 17, 0, 2),
        response(SaslHandshakeResponse(0, ["PLAIN"]), 17, 0, 2),
    )
    talk(line, *before, handshake, (frame(b"\0user\0secret"), frame(b"")), versions(3), produced(4))
    tables = made(wire)
    assert numbers(tables) == [*([1] if before else []), 2, 3, 4]
    assert [row["trouble"] for row in tables["requests"]] == [None] * len(tables["requests"])
    assert not any(b"secret" in path.read_bytes() for path in (tmp_path / "out").rglob("*.parquet"))


def test_who_speaks_something_else_is_left_out_and_counted(made: Made) -> None:
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
    talk(wire.connect(40_003), versions(1))
    tables = made(wire)
    assert numbers(tables) == [1] and len(events(tables, "opened")) == 1
    [left_out] = events(tables, "left_out")
    assert left_out["packets"] == {"not Kafka": before}


def test_given_ports_are_the_only_ones(made: Made) -> None:
    wire = Wire()
    talk(wire.connect(40_000), versions(1))
    talk(wire.connect(40_001, server=9093), versions(2))
    tables = made(wire, ports=(9093,))
    assert numbers(tables) == [2]
    assert set(events(tables, "left_out")[0]["packets"]) == {"of another port"}


@pytest.mark.parametrize("ends", [lambda line: line.close(), lambda line: line.packet(SERVER, RST), lambda line: None])
def test_a_new_handshake_between_the_same_ends_is_a_new_connection(made: Made, ends: Callable[[Line], None]) -> None:
    wire = Wire()
    line = wire.connect()
    talk(line, versions(1))
    ends(line)
    talk(wire.connect(first=(0xFFFFFFF0, 5)), versions(1), produced(2), fetched(3))
    tables = made(wire)
    assert numbers(tables) == [1, 1, 2, 3]
    opened = [one["connection"] for one in events(tables, "opened")]
    assert [row["conn"] for row in tables["requests"]] == [opened[0], *[opened[1]] * 3] and opened[0] < opened[1]
    assert CAPTURE_ENDS not in [one["why"] for one in events(tables, "closed")]


def test_sequence_numbers_are_those_of_packets_and_never_shared(made: Made) -> None:
    wire = Wire(largest=60_000)
    for port in range(5):
        line = wire.connect(40_000 + port)
        line.says(CLIENT, b"".join(versions(n)[0] for n in range(50)))
        line.says(SERVER, b"".join(versions(n)[1] for n in range(50)))
    tables = made(wire)
    seqs = [row["seq"] for row in tables["requests"]] + [row["seq"] for row in tables["events"] if row["seq"]]
    assert len(tables["requests"]) == 250 and len(seqs) == len(set(seqs))


def test_a_folder_of_captures_is_a_run_each_and_bad_ones_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wire = Wire()
    talk(wire.connect(), versions(1))
    folder = tmp_path / "in"
    folder.mkdir()
    good = wire.write(folder / "good.pcap")
    torn = wire.write(folder / "torn.pcap0")
    torn.write_bytes(torn.read_bytes()[:-1])
    (folder / "bad.pcapng").write_bytes(b"no capture")
    (folder / "notes.txt").write_text("mine")
    assert job.main([str(folder), str(tmp_path / "out"), "--without-spark"]) == 2
    said = capsys.readouterr()
    assert "bad.pcapng is no capture file" in said.err and f"{torn}: " in said.err and "notes" not in said.err
    assert "run good.pcap: 1 requests" in said.out and "run torn.pcap0: 1 requests" in said.out
    assert job.main([str(good), str(tmp_path / "out"), "--without-spark", "--port", "9092"]) == 0
    assert capsys.readouterr().out == "nothing is new\n"
    assert job.main([str(folder / "bad.pcapng"), str(tmp_path / "out"), "--without-spark"]) == 2
    assert capsys.readouterr().out == "nothing new could be read\n"


def test_memory_does_not_grow_with_the_length_of_a_connection() -> None:
    """Of all that is said nothing stays: after ten times the traffic as much is held."""

    def held(rounds: int) -> int:
        wire = Wire(largest=60_000)
        line = wire.connect()
        run = Run("r", {"wall_ms": 0, "at_ns": 0, "ports": []}, ("",), (0,), True)
        tabled = Tabled(run)
        pair: Pair | None = None
        exchanges = [named(1), produced(2, 20_000), fetched(3, 20_000)]
        tracemalloc.start()
        try:
            for _ in range(rounds):
                talk(line, *exchanges)
                for number, (at_ns, packet) in enumerate(wire.packets, 1):
                    one = segment_of(101, packet, len(packet))
                    source, to = End(one.source, one.source_port), End(one.to, one.to_port)
                    by = int(to < source)
                    pair = pair or Pair((to, source) if by else (source, to), frozenset())
                    stamp = Stamp(number, at_ns)
                    seen = Seen(stamp, by, one.sequence, one.acknowledged, one.flags, one.data, one.missing)
                    for told in pair.take(seen):
                        list(tabled.rows(told))
                wire.packets.clear()
            gc.collect()  # Python keeps tuples for later until then
            return tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()

    held(10)  # what is imported and compiled once
    assert held(200) < 1.5 * held(20)


def bytes_of_a_capture() -> bytes:
    wire = Wire(5)
    line = wire.connect()
    talk(line, versions(1), named(2), produced(3), fetched(4))
    line.says(CLIENT, produced(5, acks=0)[0])
    line.close()
    wire.disorder()
    return file_header() + b"".join(record(*one) for one in wire.packets)


WHOLE = bytes_of_a_capture()


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(24, len(WHOLE) - 1), st.integers(0, 255)), max_size=12), st.integers(0, len(WHOLE))
)
def test_no_change_to_a_capture_makes_anything_raise(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]], end: int
) -> None:
    data = bytearray(WHOLE)
    for at, value in changes:
        data[at] = value
    folder = tmp_path_factory.getbasetemp() / "mutated"
    folder.mkdir(exist_ok=True)
    path = folder / "a.pcap"
    path.write_bytes(data[: end if changes else len(data)])
    runs, told = runs_of(path)
    assert len(runs) + len(told) == 1
    for run in runs:
        assert [table for table, _ in batches(run)]


def test_it_is_told_how_much_of_a_long_capture_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture_job, "ROWS_PER_BATCH", 10)
    wire = Wire()
    talk(wire.connect(), *(versions(n) for n in range(50)))
    wire.write(tmp_path / "a.pcap")
    [run], _ = runs_of(tmp_path)
    noted: list[int] = []
    assert list(capture_job.packets_of(0, run, noted.append))
    assert len(noted) > 5 and noted == sorted(noted) and noted[-1] == sum(run.sizes)
