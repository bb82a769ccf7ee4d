"""What tasks of Spark do with a stream of rows takes as much memory for a long one as for a short one: one connection with half of all
traffic, or with all of it, does not exceed it. Without Spark: these are the functions that its tasks run. Each is measured in a
process of its own, as what other tests left in this one (brokers with threads, ten thousands of objects) counts as much."""

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
from tests.support.pipeline.exchanges import fetched, named, produced, talk
from tests.support.pipeline.wire import Wire

ROWS_PER_BATCH = 100
"""Small, so that a short stream has many batches: what is kept until a batch is full would else be most of all."""
GROWS_BY = 1.3
"""What a stream that is four times as long may take. Whatever kept a part of each row would take nearly four times as much."""


def small_batches() -> None:
    for module in (reading, capture_job):
        module.ROWS_PER_BATCH = ROWS_PER_BATCH  # type: ignore[attr-defined]


def peak_bytes(stream: Iterable[Any]) -> tuple[int, int]:
    """The most that was held at once while it was read to its end: by Python, and by Arrow."""
    gc.collect()
    arrow = 0
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        for _ in stream:
            arrow = max(arrow, pa.total_allocated_bytes() - before)
            gc.collect()  # else garbage counts that Python collects when it likes
        return tracemalloc.get_traced_memory()[1], arrow
    finally:
        tracemalloc.stop()


def of_trace(folder: Path, requests: int) -> tuple[int, int]:
    synthetic.write(folder, requests)
    [run], _ = runs_of(folder)
    return peak_bytes(reading.batches(run))


def of_file(path: Path, rounds: int) -> tuple[int, int]:
    """Of the task that reads the file."""
    [run], _ = captures_of(written(path, rounds), ())
    return peak_bytes(capture_job.packets_of(0, run))


def of_connection(path: Path, rounds: int) -> tuple[int, int]:
    """Of the task that has its connection."""
    [run], _ = captures_of(written(path, rounds), ())
    return peak_bytes(capture_job.rows_of([run], capture_job.packets_of(0, run)))


def written(path: Path, rounds: int) -> Path:
    wire = Wire()
    line = wire.connect()
    for one in range(rounds):
        talk(line, named(3 * one), produced(3 * one + 1, 2000), fetched(3 * one + 2, 2000))
    return wire.write(path.with_suffix(".pcap"))


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("peak", "short"), [(of_trace, 800), (of_file, 150), (of_connection, 150)], ids=["trace", "file", "connection"]
)
def test_a_stream_four_times_as_long_takes_no_more(
    peak: Callable[[Path, int], tuple[int, int]], short: int, tmp_path: Path
) -> None:
    spawning = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawning, initializer=small_batches) as alone:
        alone.submit(peak, tmp_path / "warm", 10).result()  # what is imported and compiled once
        peaks = [alone.submit(peak, tmp_path / str(size), size).result() for size in (short, 4 * short)]
    for shorter, longer in zip(*peaks, strict=True):
        assert longer <= GROWS_BY * shorter, peaks
