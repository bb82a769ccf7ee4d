"""The runs in a file or folder, and their rows. A run is one recording, of one of two kinds.

A trace is written by a broker or a proxy, and one recording may have several files. A packet capture is one file. This module does not depend on
Spark, or on the folder into which tables are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from kafkaproto.pipeline.capture import reading as captures
from kafkaproto.pipeline.trace import reading as traces
from kafkaproto.pipeline.trace import runs as trace_runs
from kafkaproto.pipeline.trace.runs import Notice, Run
from kafkaproto.trace.format import SUFFIX, Entry, TraceError


def runs_of(path: Path, ports: Iterable[int] = ()) -> tuple[list[Run], list[Notice]]:
    """Return the runs (recordings) in a file or folder, and messages for the user about files that cannot be used.

    path: a file or a folder, with traces, packet captures or both. ports: the ports on which brokers listen, to select connections in captures. If
    `ports` is empty, every connection that speaks Kafka is selected. Raises TraceError if there is neither a trace nor a capture.
    """
    runs, notices = captures.runs_of(path, ports)
    if not (runs or notices):
        try:
            return trace_runs.runs_of(path)
        except TraceError:
            raise TraceError(
                f"{path} contains no trace (*{SUFFIX}) and no capture (*.pcap, *.pcapng); give the path of a trace or a capture"
            ) from None
    if path.is_dir() and any(path.glob(f"*{SUFFIX}")):
        trace_run_list, more_notices = trace_runs.runs_of(path)
        return trace_run_list + runs, more_notices + notices
    return runs, notices


def batches(run: Run, note: Callable[[int], None] = lambda _: None) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield (table name, rows) for the part of a run that the Parquet tables of recorded traffic do not contain yet.

    run: the files of one recording, either a trace of a broker or proxy or a packet capture. A capture is always read from its start. note: a
    function called regularly, while a trace is read, with the number of bytes read so far. It is not called for a capture.
    """
    return captures.batches(run) if run.capture else traces.batches(run, note)


def entries(run: Run) -> Iterator[Entry]:
    """Yield the entries of a run: one recording, either a trace of a broker or proxy or a packet capture.

    An entry is an exchange (a request and its response), an event or, only in traces of this project's broker, a change of log offsets. If a file of
    a trace is damaged, its entries before the damage are yielded.
    """
    return captures.entries(run) if run.capture else traces.RunReader(run).entries()
