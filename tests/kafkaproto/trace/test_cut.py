"""`kafkaproto trace cut`: a capture whose connections carry exactly the chosen frames of the trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaproto.frame import split_frames
from kafkaproto.pipeline.capture.connections import End
from kafkaproto.pipeline.capture.link import ACK, SYN
from kafkaproto.pipeline.capture.packets import Pass
from kafkaproto.pipeline.capture.stream import Data, Stream
from kafkaproto.trace.command_line import main
from kafkaproto.trace.format import Event, Exchange, event, exchange, header
from kafkaproto.trace.reading import Trace

Ends = tuple[End, End]


def exchanges(path: Path) -> list[Exchange]:
    return [e for file in sorted(path.glob("*.kptrace")) for e in Trace(file).entries() if isinstance(e, Exchange)]


def frames(path: Path) -> dict[tuple[Ends, int], list[bytes]]:
    """Of each end of each connection what it sent, in order."""
    streams: dict[tuple[Ends, int], Stream] = {}
    said: dict[tuple[Ends, int], bytes] = {}
    first: dict[tuple[Ends, int], int] = {}
    for ends, seen in Pass("", path, frozenset()).segments():
        of = ends, seen.by
        if seen.flags & SYN:
            assert of not in streams
            streams[of] = Stream()
            first[of] = seen.sequence + 1
            streams[of].begin(first[of])
            said[of] = b""
        for piece in streams[of].take(seen.sequence, seen.data, seen.missing, seen.stamp) if seen.data else ():
            assert isinstance(piece, Data)
            said[of] += piece.data
        if seen.flags & ACK and (other := (ends, 1 - seen.by)) in first:
            assert seen.acknowledged - first[other] - len(said[other]) in (0, 1)  # a FIN counts
    return {of: [bytes(frame) for frame in split_frames(memoryview(data))] for of, data in said.items()}


def client_of(ends: Ends) -> int:
    return int(ends[0].port == 9092)


def test_all_frames_of_all_connections_are_in_it_in_their_order(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "a.pcap"
    assert main(["cut", str(folder), "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"5 exchanges in {out}\n"
    whole = exchanges(folder)
    expected = sorted(
        (
            [one.request for one in whole if one.connection == connection],
            [one.response for one in whole if one.connection == connection and one.answered],
        )
        for connection in {one.connection for one in whole}
    )
    found = frames(out)
    assert (
        sorted((found[ends, client_of(ends)], found[ends, 1 - client_of(ends)]) for ends, by in found if by) == expected
    )


@pytest.mark.parametrize("option", ["--api", "--client", "--connection", "--seq"])
def test_only_what_was_chosen_is_in_it(folder: Path, tmp_path: Path, option: str) -> None:
    whole = exchanges(folder)
    seqs = [one.seq for one in whole[1:3]]
    connections = sorted({one.connection for one in whole})
    options, wanted = {
        "--api": (["Fetch"], [one for one in whole if one.request[:2] == b"\0\1"]),
        "--client": (["b"], [one for one in whole if one.connection == connections[1]]),
        "--connection": ([str(connections[0])], [one for one in whole if one.connection == connections[0]]),
        "--seq": ([str(seqs[0]), "--seq", str(seqs[1])], [one for one in whole if one.seq in seqs]),
    }[option]
    assert main(["cut", str(folder), "--out", str(tmp_path / "a.pcap"), option, *options]) == 0
    found = frames(tmp_path / "a.pcap")
    assert wanted and sorted(f for (ends, by), fs in found.items() if by == client_of(ends) for f in fs) == sorted(
        one.request for one in wanted
    )


def test_peers_have_their_addresses_of_either_family(folder: Path, tmp_path: Path) -> None:
    [one, *_] = exchanges(folder)
    peers = ["10.1.2.3", "fe80::7", "nobody knows"]
    entries = b""
    for number, peer in enumerate(peers):
        facts = {"seq": 1, "clock_ms": 0, "broker": 0, "connection": number, "peer": peer}
        entries += event(*Event("opened", facts)) + exchange(one._replace(connection=number, broker=0))
    (tmp_path / "r.kptrace").write_bytes(header({"run": "r"}) + entries)
    assert main(["cut", str(tmp_path / "r.kptrace"), "--out", str(tmp_path / "a.pcap")]) == 0
    clients = {str(ends[client_of(ends)]) for ends, _ in frames(tmp_path / "a.pcap")}
    assert clients == {"10.1.2.3:32768", "[fe80::7]:32769", "127.0.0.1:32770"}


def test_where_nothing_is_as_asked_nothing_is_written(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cut", str(folder), "--out", str(tmp_path / "a.pcap"), "--seq", "999999"]) == 2
    assert "no exchange" in capsys.readouterr().err and not (tmp_path / "a.pcap").exists()
