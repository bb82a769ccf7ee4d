"""What tasks of Spark do with a stream of rows takes as much memory for a long one as for a short one: one connection with half of all
traffic, or with all of it, does not exceed it. Without Spark: these are the functions that its tasks run."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from benchmarks import synthetic
from pipeline.capture import job as capture_job
from pipeline.capture.reading import runs_of as captures_of
from pipeline.trace import reading
from tests.pipeline.capture.test_connections import fetched, named, produced, talk
from tests.pipeline.capture.wire import Wire

ROWS_PER_BATCH = 100
"""Small, so that a short stream has many batches: what is kept until a batch is full would else be most of all."""
GROWS_BY = 1.3
"""What a stream that is four times as long may take. Whatever kept a part of each row would take nearly four times as much."""


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (reading, capture_job):
        monkeypatch.setattr(module, "ROWS_PER_BATCH", ROWS_PER_BATCH)


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


def assert_no_more(short: tuple[int, int], long: tuple[int, int]) -> None:
    assert all(longer <= GROWS_BY * shorter for shorter, longer in zip(short, long, strict=True)), (short, long)


def test_a_trace_of_which_one_connection_has_half_is_read_as_a_stream(tmp_path: Path) -> None:
    def peak(requests: int) -> tuple[int, int]:
        folder = tmp_path / str(requests)
        synthetic.write(folder, requests)
        [run], _ = reading.runs_of(folder)
        return peak_bytes(reading.batches(run))

    peak(100)  # what is imported and compiled once
    assert_no_more(peak(800), peak(3200))


def test_one_connection_of_a_capture_is_cut_and_read_as_a_stream(tmp_path: Path) -> None:
    def peak(rounds: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Of the task that reads the file, and of the one that has its connection."""
        wire = Wire()
        line = wire.connect()
        for one in range(rounds):
            talk(line, named(3 * one), produced(3 * one + 1, 2000), fetched(3 * one + 2, 2000))
        [run], _ = captures_of(wire.write(tmp_path / f"{rounds}.pcap"), ())
        cut = peak_bytes(capture_job._of_file(0, run))
        return cut, peak_bytes(capture_job._rows([run], capture_job._of_file(0, run)))

    peak(10)  # what is imported and compiled once
    for short, long in zip(peak(150), peak(600), strict=True):
        assert_no_more(short, long)
