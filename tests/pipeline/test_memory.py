"""Memory of the functions that Spark tasks run: a long stream of rows needs no more memory than a short one.

This holds for a connection with half or all of the traffic. Each function is measured without Spark in its own process, because
objects and threads left by other tests would count as well.
"""

from __future__ import annotations

import gc
import multiprocessing
import tracemalloc
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from benchmarks import synthetic
from kafkaproto.pipeline.capture import job as capture_job
from kafkaproto.pipeline.capture.reading import runs_of as captures_of
from kafkaproto.pipeline.trace import reading
from kafkaproto.pipeline.trace.runs import runs_of
from tests.support.pipeline.exchanges import add_exchanges, fetched, named, produced
from tests.support.pipeline.wire import Wire

ROWS_PER_BATCH = 100
"""Small, so that even a short stream has many batches: otherwise the rows of an incomplete batch would dominate."""
GROWS_BY = 1.3
"""The permitted growth for a stream that is four times as long. Keeping a part of each row would need nearly four times the memory."""


def small_batches() -> None:
    for module in (reading, capture_job):
        module.ROWS_PER_BATCH = ROWS_PER_BATCH  # type: ignore[attr-defined]


def peak_bytes(stream: Iterable[Any]) -> tuple[int, int]:
    """Return the peak bytes allocated by Python and by Arrow while the stream is read to its end."""
    gc.collect()
    arrow = 0
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        for _ in stream:
            arrow = max(arrow, pa.total_allocated_bytes() - before)
            gc.collect()  # otherwise uncollected garbage would count
        return tracemalloc.get_traced_memory()[1], arrow
    finally:
        tracemalloc.stop()


def of_trace(folder: Path, requests: int) -> tuple[int, int]:
    synthetic.write(folder, requests)
    [run], _ = runs_of(folder)
    return peak_bytes(reading.batches(run))


def of_file(path: Path, rounds: int) -> tuple[int, int]:
    """Measure the task that reads the file."""
    [run], _ = captures_of(written(path, rounds), ())
    return peak_bytes(capture_job.packets_of(0, run))


def of_connection(path: Path, rounds: int) -> tuple[int, int]:
    """Measure the task that has the connection."""
    [run], _ = captures_of(written(path, rounds), ())
    return peak_bytes(capture_job.rows_of([run], capture_job.packets_of(0, run)))


def written(path: Path, rounds: int) -> Path:
    wire = Wire()
    line = wire.connect()
    for round_number in range(rounds):
        add_exchanges(
            line, named(3 * round_number), produced(3 * round_number + 1, 2000), fetched(3 * round_number + 2, 2000)
        )
    return wire.write(path.with_suffix(".pcap"))


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("peak", "short"), [(of_trace, 800), (of_file, 150), (of_connection, 150)], ids=["trace", "file", "connection"]
)
def test_trace_table_job_needs_nearly_equal_memory_for_a_trace_4_times_as_long(
    peak: Callable[[Path, int], tuple[int, int]], short: int, tmp_path: Path
) -> None:
    spawning = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawning, initializer=small_batches) as alone:
        alone.submit(peak, tmp_path / "warm", 10).result()  # imports and compiles everything once
        peaks = [alone.submit(peak, tmp_path / str(size), size).result() for size in (short, 4 * short)]
    for shorter, longer in zip(*peaks, strict=True):
        assert longer <= GROWS_BY * shorter, peaks
