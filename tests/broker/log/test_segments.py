"""The four kinds of segment: their common behaviour, and dropping, closing and failed writes of each."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from kafkaproto.broker.log.errors import StorageError
from kafkaproto.broker.log.files import FileRange, MemoryBudget, open_memory_file, open_temporary_file
from kafkaproto.broker.log.named_files import FEWEST_OPEN, FilePool, SegmentFolder
from kafkaproto.broker.log.segments import FileSegment, MemorySegment, NamedSegment, PieceSegment, Segment
from kafkaproto.broker.log.store import SMALL_SEGMENT_BYTES, Store

PLENTY = 1 << 30
BASE = 5000
KINDS = ["memory", "memory file", "temporary file", "piece", "named"]


@pytest.fixture
def budget() -> MemoryBudget:
    return MemoryBudget(PLENTY)


def new_segment(kind: str, budget: MemoryBudget, folder: Path) -> Segment:
    if kind == "memory":
        return MemorySegment(BASE, 0, budget)
    if kind == "memory file":
        file = open_memory_file(budget, 4096)
        assert file is not None
        return FileSegment(BASE, 0, file)
    if kind == "temporary file":
        return FileSegment(BASE, 0, open_temporary_file(budget))
    if kind == "piece":
        return PieceSegment(BASE, 0, budget.spill.lend(4096))
    return NamedSegment(BASE, 0, SegmentFolder(folder, FilePool(budget)), is_cleaned=False)


def fill(segment: Segment, *blocks: bytes) -> None:
    size = 0
    for block in blocks:
        assert segment.make_room(size, len(block)) >= size + len(block)
        segment.write(block, size)
        size += len(block)


def refuse_writes(fd: int, data: object, offset: int) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("kind", KINDS)
def test_appended_bytes_can_be_read_from_segments_in_memory_and_in_files(
    kind: str, budget: MemoryBudget, tmp_path: Path
) -> None:
    segment = new_segment(kind, budget, tmp_path)
    fill(segment, b"abc", b"defgh")
    region = segment.region(2, 4)
    assert (region.read() if isinstance(region, FileRange) else region) == b"cdef"
    assert segment.read(1, 3) == b"bcd"
    segment.seal(BASE + 8)
    assert (segment.base, segment.end, segment.read(0, 8)) == (BASE, BASE + 8, b"abcdefgh")


@pytest.mark.parametrize("kind", KINDS)
def test_dropping_a_log_segment_frees_its_memory_or_its_file_and_file_descriptor(
    kind: str, budget: MemoryBudget, tmp_path: Path
) -> None:
    segment = new_segment(kind, budget, tmp_path)
    fill(segment, b"x" * 3000)
    segment.drop()
    del segment
    assert (budget.used_bytes, budget.open_files, list(tmp_path.iterdir())) == (0, 0, [])


@pytest.mark.parametrize("kind", KINDS)
def test_closed_segment_leaves_a_file_only_if_the_segment_was_created_with_a_path(
    kind: str, budget: MemoryBudget, tmp_path: Path
) -> None:
    segment = new_segment(kind, budget, tmp_path)
    fill(segment, b"x" * 3000)
    segment.close()
    del segment
    assert (budget.used_bytes, budget.open_files) == (0, 0)
    assert [path.stat().st_size for path in tmp_path.iterdir()] == ([3000] if kind == "named" else [])


@pytest.mark.parametrize("kind", ["memory file", "temporary file", "piece", "named"])
def test_file_range_stays_readable_after_its_segment_is_dropped(
    kind: str, budget: MemoryBudget, tmp_path: Path
) -> None:
    segment = new_segment(kind, budget, tmp_path)
    fill(segment, b"x" * 3000)
    region = segment.region(0, 3000)
    segment.drop()
    del segment
    PieceSegment(0, 0, budget.spill.lend(4096)).write(b"y" * 4096, 0)
    assert isinstance(region, FileRange) and region.read() == b"x" * 3000


@pytest.mark.parametrize(
    ("kind", "limit_bytes"), [("memory", SMALL_SEGMENT_BYTES), ("memory file", 8192), ("piece", 4096)]
)
def test_segment_accepts_bytes_up_to_its_size_limit_and_no_bytes_when_full(
    kind: str, limit_bytes: int, tmp_path: Path
) -> None:
    segment = new_segment(kind, MemoryBudget(max(limit_bytes, 8192)), tmp_path)
    assert segment.make_room(0, limit_bytes) == limit_bytes
    assert segment.make_room(limit_bytes, 1) == 0


def test_in_memory_segment_frees_its_unused_memory_when_closed_for_appends(
    budget: MemoryBudget, tmp_path: Path
) -> None:
    segment = new_segment("memory file", budget, tmp_path)
    fill(segment, b"x" * 100_000)
    assert budget.used_bytes > 102_400
    segment.seal(BASE + 100_000)
    assert budget.used_bytes == 102_400  # whole pages


def test_append_that_fails_halfway_leaves_no_bytes_in_the_segment_file_on_disk(
    budget: MemoryBudget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = new_segment("named", budget, tmp_path)
    fill(segment, b"abc")
    real_pwrite = os.pwrite

    def half(fd: int, data: bytes, offset: int) -> int:
        return real_pwrite(fd, data[:2], offset) if len(data) > 2 else refuse_writes(fd, data, offset)

    monkeypatch.setattr(os, "pwrite", half)
    with pytest.raises(OSError, match="No space left"):
        segment.write(b"defg", 3)
    assert not segment.has_leftover
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"abc"]


@pytest.mark.parametrize("by_sealing", [False, True])
def test_next_append_or_segment_roll_removes_the_bytes_that_a_failed_append_left(
    by_sealing: bool, budget: MemoryBudget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = new_segment("named", budget, tmp_path)
    fill(segment, b"abc")
    real_pwrite = os.pwrite

    def half(fd: int, data: bytes, offset: int) -> int:
        return real_pwrite(fd, data[:2], offset) if len(data) > 2 else refuse_writes(fd, data, offset)

    def refuse_truncation(fd: int, size: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "pwrite", half)
        broken.setattr(os, "ftruncate", refuse_truncation)
        with pytest.raises(OSError, match="No space left"):
            segment.write(b"defg", 3)
        assert segment.has_leftover
        for attempt in (lambda: segment.make_room(3, 1), lambda: segment.seal(BASE + 3)):
            with pytest.raises(StorageError, match="cannot remove the bytes that a failed append left"):
                attempt()
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"abcde"]
    if by_sealing:
        segment.seal(BASE + 3)
        assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"abc"]
    else:
        segment.write(b"z", 3)
        assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"abcz"]


def test_flush_syncs_a_segment_file_that_was_closed_to_save_file_descriptors(
    budget: MemoryBudget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = FilePool(budget, FEWEST_OPEN)
    segment = NamedSegment(BASE, 0, SegmentFolder(tmp_path / "0", pool), is_cleaned=False)
    fill(segment, b"abc")
    for number in range(1, FEWEST_OPEN + 1):
        fill(NamedSegment(0, 0, SegmentFolder(tmp_path / str(number), pool), is_cleaned=False), b"x")
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.fstat(fd).st_ino))
    segment.flush()
    assert segment.path is not None and synced == [segment.path.stat().st_ino]


def test_in_memory_bytes_stay_readable_if_moving_them_to_a_file_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    budget = MemoryBudget(PLENTY)
    store = Store(budget)
    store.append(b"a" * SMALL_SEGMENT_BYTES)
    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", refuse_writes)
        with pytest.raises(StorageError, match="No space left"):
            store.append(b"b" * 1000)
    assert store.read(0, 10) == b"a" * 10
    assert budget.used_bytes == SMALL_SEGMENT_BYTES
    assert store.append(b"c" * 1000) == SMALL_SEGMENT_BYTES
    assert store.read(SMALL_SEGMENT_BYTES - 1, 2) == b"ac"


def test_large_batch_in_a_shared_segment_file_does_not_overwrite_another_partition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A failed first append leaves an empty segment in a piece of the file; a larger batch must not overwrite the next piece."""
    budget = MemoryBudget(0)
    store, neighbour = Store(budget), Store(budget)
    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", refuse_writes)
        with pytest.raises(StorageError, match="No space left"):
            store.append(b"a" * 100)
    neighbour.append(b"n" * 4000)
    store.append(b"b" * 2 * SMALL_SEGMENT_BYTES)
    assert store.read(0, 2 * SMALL_SEGMENT_BYTES) == b"b" * 2 * SMALL_SEGMENT_BYTES
    assert neighbour.read(0, 4000) == b"n" * 4000
