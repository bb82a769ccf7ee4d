"""Trace files: rotation by size, counting of dropped entries, and flushed entries after a kill."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.server import tracing
from kafkaproto.broker.server.trace_writer import TraceWriter
from kafkaproto.broker.server.tracing import Recording
from kafkaproto.conformance.client import SocketConnection
from kafkaproto.header import decode_request_header
from kafkaproto.messages.api_versions import ApiVersionsRequest
from kafkaproto.messages.metadata import MetadataRequest
from kafkaproto.pipeline.ask import ask
from kafkaproto.testing import cluster
from kafkaproto.trace.format import Event, Exchange, event
from kafkaproto.trace.reading import Trace, files_of

PATIENCE_S = 30


def events(folder: Path) -> list[Event]:
    return [e for path in files_of(folder) for e in Trace(path).entries() if isinstance(e, Event)]


def test_trace_writer_starts_a_numbered_file_when_the_current_file_is_full(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path, "run", {"recorder": "test"}, file_bytes=2000)
    for number in range(100):
        writer.put(event("e", {"seq": number, "filler": "x" * 100}))
    writer.close()
    paths = files_of(tmp_path)
    assert len(paths) > 5 and max(path.stat().st_size for path in paths) <= 2000
    metas = [Trace(path).meta for path in paths]
    assert [(meta["run"], meta["file"], meta["recorder"]) for meta in metas] == [
        ("run", number, "test") for number in range(len(paths))
    ]
    assert [e.facts["seq"] for e in events(tmp_path)] == list(range(100))


def test_trace_says_how_many_entries_were_dropped_because_the_queue_was_full(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path, "run", {}, queue_pieces=0)
    for number in range(7):
        writer.put(event("e", {"seq": number}))
    writer.put(event("e", {"seq": 7}) + event("e", {"seq": 8}), 2)
    writer.close()
    assert [(e.kind, e.facts["entries"]) for e in events(tmp_path)] == [("dropped", 9)]


def test_trace_writer_drops_entries_when_its_queue_is_full_and_accepts_later_entries(tmp_path: Path) -> None:
    size = len(event("e", {"seq": 1}))
    writer = TraceWriter(tmp_path, "run", {}, queue_bytes=3 * size)
    accepted = 0
    deadline = time.monotonic() + PATIENCE_S
    while accepted < 12 and time.monotonic() < deadline:  # the thread writes three at a time
        before = writer.dropped
        writer.put(event("e", {"seq": accepted % 10}))
        accepted += writer.dropped == before
    writer.put(event("e", {"filler": "x" * 4 * size}))
    writer.close()
    recorded_events = events(tmp_path)
    assert [e.facts["seq"] for e in recorded_events if e.kind == "e"] == [number % 10 for number in range(12)]
    assert recorded_events[-1].kind == "dropped" and recorded_events[-1].facts["entries"] == writer.dropped > 0


def test_error_for_an_unwritable_trace_folder_names_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"trace folder .*file.*--trace"):
        TraceWriter(tmp_path / "file", "run", {})
    TraceWriter(tmp_path, "run", {}).close()
    with pytest.raises(ConfigError, match="exists"):
        TraceWriter(tmp_path, "run", {})  # nothing is overwritten


def addresses(cluster: Cluster) -> list[tuple[str, int]]:
    """Return the broker addresses that clients get in Metadata responses."""
    return [address for broker in cluster.controller.image.brokers.values() for address in broker.listeners.values()]


def test_no_connection_is_accepted_before_the_trace_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording_class, connection_states = tracing.Recording, []

    def begin(cluster: Cluster, folder: str) -> Recording:
        for address in addresses(cluster):
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(address, PATIENCE_S)
            connection_states.append(address)
        return recording_class(cluster, folder)

    monkeypatch.setattr(tracing, "Recording", begin)
    with cluster(2, trace=tmp_path) as c:
        assert [f"{host}:{port}" for host, port in connection_states] == c.bootstrap_servers
        for host, port in connection_states:
            # The response shows that the broker has accepted the connection.
            ask(f"{host}:{port}", ApiVersionsRequest(), 0)
    recorded = [(entry.facts["broker"], entry.kind) for entry in events(tmp_path)]
    assert sorted(recorded) == [(broker, kind) for broker in (0, 1) for kind in ("closed", "opened")]


def test_cluster_with_trace_raises_config_error_if_its_port_is_taken_during_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording_class = tracing.Recording
    with socket.socket() as other:

        def begin(cluster: Cluster, folder: str) -> Recording:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(addresses(cluster)[0])
            other.listen()
            return recording_class(cluster, folder)

        monkeypatch.setattr(tracing, "Recording", begin)
        with (
            pytest.raises(ConfigError, match=r"broker 0 cannot listen on .*: the port is in use"),
            cluster(trace=tmp_path),
        ):
            pass


def test_cluster_started_with_a_trace_folder_writes_client_requests_to_a_trace(tmp_path: Path) -> None:
    with cluster(topics={"t": 1}, trace=tmp_path / "deep" / "trace") as c:
        host, port = c.bootstrap.split(":")
        connection = SocketConnection(host, int(port), "me")
        connection.send_bytes(connection.frame(MetadataRequest([]), 9))
        assert connection.take(PATIENCE_S) is not None
    [path] = files_of(tmp_path / "deep" / "trace")
    trace = Trace(path)
    entries = list(trace.entries())
    assert trace.torn == "" and trace.meta["cluster_id"] and trace.meta["brokers"][0]["id"] == 0
    assert trace.meta["advertised"][str(int(ApiKey.METADATA))][0] == 0
    [exchange] = [e for e in entries if isinstance(e, Exchange)]
    header, _ = decode_request_header(memoryview(exchange.request), 0, len(exchange.request))
    assert (header.client_id, header.api_key) == ("me", ApiKey.METADATA)
    assert [e.kind for e in entries if isinstance(e, Event)] == ["topic", "opened", "closed"]


def test_single_request_is_written_to_the_trace_file_while_the_cluster_still_runs(tmp_path: Path) -> None:
    with cluster(trace=tmp_path) as c:
        host, port = c.bootstrap.split(":")
        connection = SocketConnection(host, int(port), "me")
        connection.send_bytes(connection.frame(MetadataRequest([]), 9))
        assert connection.take(PATIENCE_S) is not None
        until = time.monotonic() + PATIENCE_S
        while not any(isinstance(e, Exchange) for path in files_of(tmp_path) for e in Trace(path).entries()):
            assert time.monotonic() < until
            time.sleep(0.02)


def test_flushed_trace_entries_survive_kill_9(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "broker", "--port", "0", "--trace", str(tmp_path), "--log-level", "error"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        host, port = process.stdout.readline().strip().split(":")
        connection = SocketConnection(host, int(port), "me")
        for _ in range(50):
            connection.send_bytes(connection.frame(MetadataRequest([]), 9))
            assert connection.take(PATIENCE_S) is not None
        [path] = files_of(tmp_path)
        deadline = time.monotonic() + PATIENCE_S
        while sum(isinstance(e, Exchange) for e in Trace(path).entries()) < 50:
            assert time.monotonic() < deadline, "it was never flushed"
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    assert sum(isinstance(e, Exchange) for e in Trace(path).entries()) == 50
