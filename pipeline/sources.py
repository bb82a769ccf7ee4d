"""Where tables come from: traces and captures, of one file or a folder, as runs and as their rows. Must never know Spark, nor the tables' folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from kafkaproto.pipeline.capture import reading as captures
from kafkaproto.pipeline.trace import reading as traces
from kafkaproto.pipeline.trace import runs as trace_runs
from kafkaproto.pipeline.trace.runs import Run, Told
from kafkaproto.trace.format import SUFFIX, Entry, TraceError


def runs_of(path: Path, ports: Iterable[int] = ()) -> tuple[list[Run], list[Told]]:
    """The runs of all files, and what has to be said of files that are none. Raises TraceError where there is no file at all.

    ports: of brokers, for captures; empty: whoever speaks Kafka.
    """
    runs, told = captures.runs_of(path, ports)
    if not (runs or told):
        try:
            return trace_runs.runs_of(path)
        except TraceError as error:
            raise TraceError(f"{error}, and no capture (*.pcap, *.pcapng)") from None
    if path.is_dir() and any(path.glob(f"*{SUFFIX}")):
        more, said = trace_runs.runs_of(path)
        return more + runs, said + told
    return runs, told


def batches(run: Run, note: Callable[[int], None] = lambda _: None) -> Iterator[tuple[str, pa.RecordBatch]]:
    """(table, rows) of what is new of a run. note: is told now and then how many bytes of a trace are read."""
    return captures.batches(run) if run.capture else traces.batches(run, note)


def entries(run: Run) -> Iterator[Entry]:
    """Exchanges and events of a run, as far as they can be read."""
    return captures.entries(run) if run.capture else traces.Reading(run).entries()
