"""The recordings (runs) in a file or folder of traces or captures, and their rows.

This module does not depend on Spark, or on the folder into which tables are written.
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
    """Return the recordings (runs) in all files, and notices about files that cannot be used. Raises TraceError if there is no file.

    path: a file, or a folder of traces and captures. ports: the ports on which brokers listen, to select connections in captures. If `ports` is
    empty, every connection that speaks Kafka is selected.
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
    """Yield (table name, rows) for the part of a run (a recording) that is not in the tables yet.

    note: a function called regularly, while a trace is read, with the number of bytes read so far. It is not called for a capture.
    """
    return captures.batches(run) if run.capture else traces.batches(run, note)


def entries(run: Run) -> Iterator[Entry]:
    """Yield the exchanges (requests with responses) and events of a run (a recording). A damaged file yields the entries before the damage."""
    return captures.entries(run) if run.capture else traces.RunReader(run).entries()
