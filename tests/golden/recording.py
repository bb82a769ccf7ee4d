"""A virtual cluster that writes down every byte and every time: one line for each thing that happened, as canonical text.

The lines of a run, in the order in which they are written:

    run       semantics and release
    open      a connection: number, time, broker, client id, address, listener
    served    the acceptor let the connection in
    request   bytes that a client sent: connection, time, hex
    response  one response frame with its length: connection, time, hex
    paused, reading   the broker stopped or resumed reading a connection
    yields    a connection with more frames lets the others have their turn
    closed    the broker closed a connection
    requests, throttles, event   the journal at the end of the run, as JSON
    metric    the broker's metrics, at the end of the run and where a run reads them
    header, entry   the trace, entry by entry, as hex
    file      the name of a trace file, before its header and entries, in a run that writes files

Times are milliseconds since the start of the run. Times of the monotonic clock are the only bytes that differ between two runs: the
trace has 1 in the place of each that is set.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kafkaproto.api import APIS
from kafkaproto.broker.log.files import FileRange
from kafkaproto.broker.metadata.image import Image
from kafkaproto.broker.observe import metrics
from kafkaproto.broker.observe.recorder import Recorder
from kafkaproto.broker.quota.store import QuotaAlteration, QuotaOp
from kafkaproto.broker.runtime.clock import ManualClock
from kafkaproto.broker.server.trace_writer import FILE_BYTES, TraceWriter
from kafkaproto.broker.server.tracing import TOGETHER, meta_of
from kafkaproto.broker.testing.memory import LISTENER, MemoryClient, VirtualCluster
from kafkaproto.messages.offset_commit import OffsetCommitRequest
from kafkaproto.messages.offset_fetch import OffsetFetchRequest
from kafkaproto.messages.produce import ProduceRequest
from kafkaproto.trace import format as trace_format
from kafkaproto.trace.reading import READERS
from tests.golden.fitting import fitted

START_MS = 1_700_000_000_000
RACKS = ("a", "b", "c")


UNKNOWN_ID = b"\x07" * 16


def add_topic_ids(request: Any, image: Image) -> None:
    """Add the ids of the topics that a request names, if its newest version has only ids. Other versions leave them out."""
    if isinstance(request, ProduceRequest):
        topics: list[Any] = request.topic_data
    elif isinstance(request, OffsetCommitRequest):
        topics = list(request.topics)
    elif isinstance(request, OffsetFetchRequest):
        topics = [topic for group in request.groups for topic in group.topics or ()]
    else:
        return
    for topic in topics:
        existing_topic = image.topics.get(topic.name)
        topic.topic_id = UNKNOWN_ID if existing_topic is None else existing_topic.topic_id


class RecordedClient(MemoryClient):
    """A client whose traffic is recorded by its cluster."""

    def __init__(
        self, cluster: RecordedCluster, broker_id: int, client_id: str | None, address: str, listener: str
    ) -> None:
        self.number = len(cluster.clients)
        self._recorded = cluster
        self.was_reading = True
        self.raw = False
        """Whether responses are not decoded, because the bytes sent may be an invalid request."""
        cluster.clients.append(self)
        cluster.note(f"open {self.number}", f"broker={broker_id} client={client_id} {address} {listener}")
        super().__init__(cluster, broker_id, client_id, address, listener)

    def frame(self, request: Any, version: int, correlation_id: int = 0) -> bytes:
        """Return the bytes of a request, without the fields that the version lacks."""
        return super().frame(fitted(request, version), version, correlation_id)

    def next_frame(self, request: Any, version: int) -> bytes:
        """Return the bytes of the next request, without the fields that the version lacks."""
        return super().next_frame(fitted(request, version), version)

    def send_bytes(self, data: bytes, *, patch_length: bool = False) -> None:
        if patch_length:
            data = (len(data) - 4).to_bytes(4, "big") + data[4:]
        self._recorded.note(f"request {self.number}", data.hex())
        super().send_bytes(data)

    def serve(self, now_ms: int) -> None:
        self._recorded.note(f"served {self.number}")
        super().serve(now_ms)

    def write(self, buffers: Sequence[object]) -> bool:
        data = b"".join(b.read() if isinstance(b, FileRange) else bytes(b) for b in buffers)  # type: ignore[call-overload]
        self._recorded.note(f"response {self.number}", data.hex())
        return True if self.raw else super().write([data])

    def close(self) -> None:
        self._recorded.note(f"closed {self.number}")
        super().close()

    def call_soon(self) -> None:
        self._recorded.note(f"yields {self.number}")
        super().call_soon()

    def hang_up(self, why: str = "the client has gone") -> None:
        """Close the socket from the client's side."""
        self._recorded.note(f"hangs up {self.number}")
        self.connection.socket_closed(why)
        self._recorded.run()


class RecordedCluster(VirtualCluster):
    """A virtual cluster of a golden run. `finish` returns the lines of the whole run.

    trace_folder: where a `TraceWriter` writes the trace, which `finish` reads back; None keeps the trace in memory.
    trace_file_bytes: the size limit of a trace file. The length of an event depends on the monotonic clock, so only a limit that every
    piece exceeds, or that none reaches, splits a run at the same places each time.
    """

    def __init__(
        self,
        brokers: int = 3,
        config: Mapping[str, str] | None = None,
        *,
        semantics: str = "kip",
        release: str = "3.9",
        trace_folder: str | os.PathLike[str] | None = None,
        trace_file_bytes: int = FILE_BYTES,
        **options: Any,
    ) -> None:
        self.lines: list[str] = [f"run semantics={semantics} release={release}"]
        self.clients: list[RecordedClient] = []
        self._trace = bytearray()
        racks = {f"{i}.broker.rack": RACKS[i] for i in range(min(brokers, len(RACKS)))}
        clock = options.pop("clock", None) or ManualClock(START_MS)
        super().__init__(
            brokers,
            {**racks, **(config or {})},
            clock=clock,
            semantics=semantics,
            release_name=release,
            detailed_journal=True,
            **options,
        )
        meta = {**meta_of(self.state), "wall_ms": 0, "at_ns": 0}
        self._header = trace_format.header(meta)
        self._trace_folder = None if trace_folder is None else Path(trace_folder)
        self._writer: TraceWriter | None = None
        if trace_folder is not None:
            self._writer = TraceWriter(trace_folder, "golden", meta, file_bytes=trace_file_bytes)
        recorder = Recorder(self._keep if self._writer is None else self._writer.put, TOGETHER)
        for topic in self.state.controller.image.topics.values():
            recorder.topic(self.now_ms, "existing", topic)
        for (entity, key), value in self.state.quota_store.all().items():
            recorder.quota_changed(entity, key, value, self.now_ms)
        self.state.record(recorder)

    # ---- steps of a run --------------------------------------------------------------------------------------------------------

    def connect(
        self, broker_id: int = 0, client_id: str | None = "golden", address: str = "127.0.0.1", listener: str = LISTENER
    ) -> RecordedClient:
        return RecordedClient(self, broker_id, client_id, address, listener)

    def highest(self, api: str) -> int:
        """Return the highest version of an API that this cluster offers."""
        return next(api_range.max_version for key, api_range in self.state.apis.items() if APIS[key].name == api)

    def offers(self, api: str) -> bool:
        return any(APIS[key].name == api for key in self.state.apis)

    def send(self, client: MemoryClient, request: Any, version: int | None = None) -> Any:
        """Send a request and return the newest response on the connection.

        version: None for the highest offered version. Topics that the request names get their ids, too, for the versions that send only ids.
        """
        add_topic_ids(request, self.state.controller.image)
        name = type(request).__name__.removesuffix("Request")
        version = self.highest(name) if version is None else version
        client.send(request, version)
        return client.answers[-1].message if client.answers else None

    def limit(
        self, client_id: str | None = "golden", user: str | None = None, ip: str | None = None, **values: float | None
    ) -> None:
        """Set client quotas without a request; None as a value removes one."""
        entity = [(kind, name) for kind, name in (("user", user), ("client-id", client_id), ("ip", ip)) if name]
        changes = [QuotaOp(key, value or 0.0, remove=value is None) for key, value in values.items()]
        for result in self.state.quota_store.alter([QuotaAlteration(entity, changes)], False):
            assert result.error_code == 0, result
        self.run()

    def run(self) -> None:
        super().run()
        for client in self.clients:
            if client.reading != client.was_reading and client.closed_ms is None:
                client.was_reading = client.reading
                self.note(f"{'reading' if client.reading else 'paused'} {client.number}")

    def record_metrics(self) -> None:
        self.lines += self._metrics()

    # ---- recorded lines --------------------------------------------------------------------------------------------------------

    def note(self, title: str, more: str = "") -> None:
        at_ms = self.now_ms - START_MS
        self.lines.append(f"{title} @{at_ms} {more}".rstrip())

    def finish(self) -> list[str]:
        """End the recording and return every line of the run."""
        self.state.record(None)
        journal = self.state.journal
        lines = [
            *self.lines,
            *(f"requests {canonical(entry._asdict())}" for entry in journal.requests()),
            *(f"throttles {canonical(facts_of(entry))}" for entry in journal.throttles()),
            *(f"event {canonical(facts_of(entry))}" for entry in journal.events()),
            *self._metrics(),
            *self._trace_lines(),
        ]
        self.state.close()
        return lines

    def _keep(self, data: bytes, entries: int) -> None:
        self._trace.extend(data)

    def _trace_lines(self) -> Iterator[str]:
        if self._writer is None or self._trace_folder is None:
            yield from lines_of(self._header, bytes(self._trace))
            return
        self._writer.close()
        for path in sorted(self._trace_folder.iterdir()):
            data = path.read_bytes()
            length_at = len(trace_format.MAGIC) + 2
            end = length_at + 4 + int.from_bytes(data[length_at : length_at + 4], "big")
            yield f"file {path.name}"
            yield from lines_of(data[:end], data[end:])

    def _metrics(self) -> list[str]:
        snapshot = metrics.snapshot(self.state, self.now_ms)
        return sorted(f"metric {json.dumps(key)} {value!r}" for key, value in snapshot.items())


def canonical(facts: Mapping[str, Any]) -> str:
    return json.dumps(facts, default=str, sort_keys=True, separators=(",", ":"))


def facts_of(entry: Any) -> dict[str, Any]:
    """Return the fields of a journal entry and of its reason, if any."""
    facts = {field.name: getattr(entry, field.name) for field in dataclasses.fields(entry)}
    return {name: facts_of(value) if name == "reason" else value for name, value in facts.items()}


def lines_of(header: bytes, trace: bytes) -> Iterator[str]:
    yield f"header {header.hex()}"
    yield from (f"entry {entry.hex()}" for entry in entries_of(trace))


def entries_of(trace: bytes) -> list[bytes]:
    """Return the trace entries with their lengths, without times of the monotonic clock."""
    entries = []
    at = 0
    while at < len(trace):
        size, kind = int.from_bytes(trace[at : at + 4], "big"), trace[at + 4]
        whole = trace[at : at + 5 + size]
        entry = READERS[trace_format.VERSION][kind](whole[5:])
        assert trace_format.encoded(entry) == whole, "an entry of the trace does not survive decoding"
        entries.append(trace_format.encoded(without_monotonic_times(entry)))
        at += len(whole)
    return entries


def without_monotonic_times(entry: Any) -> Any:
    """Return the entry with 1 in place of each non-zero time of the monotonic clock."""
    if isinstance(entry, trace_format.Event):
        facts = {name: min(value, 1) if name == "at_ns" else value for name, value in entry.facts.items()}
        return entry._replace(facts=facts)
    names = [name for name in entry._fields if name.endswith("_ns")]
    return entry._replace(**{name: min(getattr(entry, name), 1) for name in names})
