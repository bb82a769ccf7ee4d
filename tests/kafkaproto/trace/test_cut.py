"""`kafkaproto trace cut`: a packet capture of the selected exchanges of a trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaproto.frame import split_frames
from kafkaproto.pipeline.capture.connections import Endpoint
from kafkaproto.pipeline.capture.link import ACK, SYN
from kafkaproto.pipeline.capture.packets import CapturePass
from kafkaproto.pipeline.capture.stream import Data, Stream
from kafkaproto.trace.command_line import main
from kafkaproto.trace.format import Event, Exchange, event, exchange, header
from kafkaproto.trace.reading import Trace

Ends = tuple[Endpoint, Endpoint]


def exchanges(path: Path) -> list[Exchange]:
    return [e for file in sorted(path.glob("*.kptrace")) for e in Trace(file).entries() if isinstance(e, Exchange)]


def frames(path: Path) -> dict[tuple[Ends, int], list[bytes]]:
    """Return the frames that each end of each connection sent, in order."""
    streams: dict[tuple[Ends, int], Stream] = {}
    sent: dict[tuple[Ends, int], bytes] = {}
    first: dict[tuple[Ends, int], int] = {}
    for ends, segment in CapturePass("", path, frozenset()).segments():
        stream = ends, segment.by
        if segment.flags & SYN:
            assert stream not in streams
            streams[stream] = Stream()
            first[stream] = segment.sequence + 1
            streams[stream].begin(first[stream])
            sent[stream] = b""
        for piece in (
            streams[stream].take(segment.sequence, segment.data, segment.missing, segment.stamp) if segment.data else ()
        ):
            assert isinstance(piece, Data)
            sent[stream] += piece.data
        if segment.flags & ACK and (other := (ends, 1 - segment.by)) in first:
            assert segment.acknowledged - first[other] - len(sent[other]) in (0, 1)  # a FIN counts
    return {stream: [bytes(frame) for frame in split_frames(memoryview(data))] for stream, data in sent.items()}


def client_of(ends: Ends) -> int:
    return int(ends[0].port == 9092)


def test_trace_cut_command_writes_all_frames_of_a_trace_in_order_to_a_pcap_file(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "a.pcap"
    assert main(["cut", str(folder), "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"wrote 5 requests to {out}\n"
    whole = exchanges(folder)
    expected = sorted(
        (
            [traced.request for traced in whole if traced.connection == connection],
            [traced.response for traced in whole if traced.connection == connection and traced.answered],
        )
        for connection in {traced.connection for traced in whole}
    )
    cut_frames = frames(out)
    assert (
        sorted(
            (cut_frames[ends, client_of(ends)], cut_frames[ends, 1 - client_of(ends)]) for ends, by in cut_frames if by
        )
        == expected
    )


@pytest.mark.parametrize("option", ["--api", "--client", "--connection", "--seq"])
def test_trace_cut_command_writes_only_the_selected_requests_and_responses(
    folder: Path, tmp_path: Path, option: str
) -> None:
    whole = exchanges(folder)
    seqs = [traced.seq for traced in whole[1:3]]
    connections = sorted({traced.connection for traced in whole})
    options, selected = {
        "--api": (["Fetch"], [traced for traced in whole if traced.request[:2] == b"\0\1"]),
        "--client": (["b"], [traced for traced in whole if traced.connection == connections[1]]),
        "--connection": ([str(connections[0])], [traced for traced in whole if traced.connection == connections[0]]),
        "--seq": ([str(seqs[0]), "--seq", str(seqs[1])], [traced for traced in whole if traced.seq in seqs]),
    }[option]
    assert main(["cut", str(folder), "--out", str(tmp_path / "a.pcap"), option, *options]) == 0
    cut_frames = frames(tmp_path / "a.pcap")
    assert selected and sorted(
        f for (ends, by), fs in cut_frames.items() if by == client_of(ends) for f in fs
    ) == sorted(traced.request for traced in selected)


def test_packets_written_by_trace_cut_command_have_the_ip_addresses_of_the_clients(
    folder: Path, tmp_path: Path
) -> None:
    [first_exchange, *_] = exchanges(folder)
    peers = ["10.1.2.3", "fe80::7", "nobody knows"]
    entries = b""
    for number, peer in enumerate(peers):
        facts = {"seq": 1, "clock_ms": 0, "broker": 0, "connection": number, "peer": peer}
        entries += event(*Event("opened", facts)) + exchange(first_exchange._replace(connection=number, broker=0))
    (tmp_path / "r.kptrace").write_bytes(header({"run": "r"}) + entries)
    assert main(["cut", str(tmp_path / "r.kptrace"), "--out", str(tmp_path / "a.pcap")]) == 0
    clients = {str(ends[client_of(ends)]) for ends, _ in frames(tmp_path / "a.pcap")}
    assert clients == {"10.1.2.3:32768", "[fe80::7]:32769", "127.0.0.1:32770"}


def test_trace_cut_command_without_a_matching_request_writes_no_file(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cut", str(folder), "--out", str(tmp_path / "a.pcap"), "--seq", "999999"]) == 2
    assert "no request in" in capsys.readouterr().err and not (tmp_path / "a.pcap").exists()
