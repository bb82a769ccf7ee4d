"""The record store: positions, segments, the memory budget, file descriptors, and bytes in use after their segment is dropped."""

from __future__ import annotations

import gc
import os
import random
import resource
import socket
import stat
from pathlib import Path

import pytest

from kafkaproto.broker.log import files
from kafkaproto.broker.log.errors import StorageError
from kafkaproto.broker.log.index import INTERVAL_BYTES
from kafkaproto.broker.log.named_files import FEWEST_OPEN, FilePool, SegmentFolder
from kafkaproto.broker.log.store import SMALL_SEGMENT_BYTES, FileRange, MemoryBudget, Store

PLENTY = 1 << 30


def content(store: Store, position: int, length: int) -> bytes:
    region = store.region(position, length)
    return region.read() if isinstance(region, FileRange) else region


def open_descriptors() -> int:
    return len(os.listdir("/dev/fd"))


def memory_of(file: files.SegmentFile) -> int:
    return os.fstat(file.fileno()).st_blocks * 512


def test_bytes_keep_their_log_positions_when_a_partition_moves_from_memory_to_a_file() -> None:
    store = Store(MemoryBudget(PLENTY))
    blocks = [bytes([i]) * 3000 for i in range(60)]
    positions = [store.append(block) for block in blocks]
    assert positions == [3000 * i for i in range(60)]
    assert isinstance(store.region(0, 10), FileRange)
    assert [content(store, p, 3000) for p in positions] == blocks
    assert content(store, 2990, 20) == blocks[0][-10:] + blocks[1][:10]
    assert store.read(3000, 3000) == blocks[1]


def test_ten_thousand_small_partitions_use_no_file_descriptors() -> None:
    budget = MemoryBudget(PLENTY)
    gc.collect()  # descriptors left by other tests must not be closed while we count
    before = open_descriptors()
    stores = [Store(budget) for _ in range(10_000)]
    for store in stores:
        store.append(b"x" * 500)
    assert open_descriptors() == before
    assert budget.used_bytes == 5_000_000
    assert content(stores[-1], 100, 400) == b"x" * 400
    for store in stores:
        store.close()
    assert budget.used_bytes == 0


def test_partition_moves_from_memory_to_a_file_only_above_64_kib() -> None:
    store = Store(MemoryBudget(PLENTY))
    store.append(b"x" * SMALL_SEGMENT_BYTES)
    assert isinstance(store.region(0, 10), bytes)
    store.append(b"y")
    assert isinstance(store.region(0, 10), FileRange)
    assert content(store, SMALL_SEGMENT_BYTES - 1, 2) == b"xy"


@pytest.mark.parametrize("limit", [0, 10_000, 200_000, 1_000_000, 3_333_333])
def test_log_stores_use_at_most_their_memory_budget_and_write_the_rest_to_files(limit: int) -> None:
    budget = MemoryBudget(limit)
    stores = [Store(budget) for _ in range(5)]
    segment_files: set[files.SegmentFile] = set()
    for i in range(400):
        for store in stores:
            position = store.append(bytes([i & 255]) * 5000)
            region = store.region(position, 5000)
            if isinstance(region, FileRange):
                segment_files.add(region.file)
        assert budget.used_bytes <= limit
    in_memory = [file for file in segment_files if file.reserved_bytes]
    on_disk = [file for file in segment_files if not file.reserved_bytes]
    assert on_disk
    assert sum(memory_of(file) for file in in_memory) <= limit
    assert all(memory_of(file) <= file.reserved_bytes for file in in_memory)
    for store in stores:
        assert all(content(store, 5000 * i, 5000) == bytes([i & 255]) * 5000 for i in range(400))


def test_temporary_segment_file_is_unlinked_so_that_a_killed_broker_leaves_no_file() -> None:
    store = Store(MemoryBudget(0))
    store.append(b"x" * 100)
    region = store.region(0, 100)
    assert isinstance(region, FileRange)
    assert os.fstat(region.file.fileno()).st_nlink == 0


def test_temporary_files_can_be_created_on_file_systems_without_o_tmpfile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "O_TMPFILE")
    file = files.open_temporary_file(MemoryBudget(0))
    assert os.fstat(file.fileno()).st_nlink == 0
    os.pwrite(file.fileno(), b"abc", 5)
    assert FileRange(file, 5, 3).read() == b"abc"


def test_log_uses_temporary_files_if_the_function_memfd_create_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create")
    budget = MemoryBudget(PLENTY)
    store = Store(budget)
    for i in range(100):
        store.append(bytes([i]) * 4000)
    assert all(content(store, 4000 * i, 4000) == bytes([i]) * 4000 for i in range(100))
    assert budget.used_bytes <= SMALL_SEGMENT_BYTES


@pytest.mark.rule("F-14")
def test_segment_rolls_at_segment_bytes_and_no_read_crosses_a_segment_end() -> None:
    store = Store(MemoryBudget(PLENTY), segment_bytes=1000)
    for i in range(7):
        store.append(bytes([i]) * 300)
    assert [store.segment_end(300 * i) for i in range(7)] == [900, 900, 900, 1800, 1800, 1800, 2100]
    assert store.read(600, 5000) == b"\2" * 300
    store.segment_bytes = 10
    assert store.append(b"z" * 50) == 2100
    assert store.segment_end(2000) == 2100


def test_batch_larger_than_segment_bytes_gets_a_segment_of_its_own() -> None:
    store = Store(MemoryBudget(PLENTY), segment_bytes=1000)
    store.append(b"a" * 10)
    store.append(b"b" * 200_000)
    store.append(b"c" * 10)
    assert [store.segment_end(p) for p in (0, 10, 200_010)] == [10, 200_010, 200_020]
    assert content(store, 10, 200_000) == b"b" * 200_000


def test_dropping_bytes_before_a_log_position_frees_only_whole_segments() -> None:
    budget = MemoryBudget(PLENTY)
    store = Store(budget, segment_bytes=100_000)
    for _ in range(40):
        store.append(b"x" * 10_000)
    files_before = budget.open_files
    store.drop_before(99_999)
    assert store.start_position == 0
    store.drop_before(250_000)
    assert store.start_position == 200_000
    assert budget.open_files == files_before - 2
    assert content(store, 200_000, 10) == b"x" * 10
    assert store.read(0, 10) == b""
    store.drop_before(store.end_position)
    assert (store.start_position, budget.used_bytes, budget.open_files) == (400_000, 0, 0)
    assert store.append(b"y") == 400_000


def test_dropping_log_segments_also_removes_the_index_entries_of_these_segments() -> None:
    store = Store(MemoryBudget(PLENTY), segment_bytes=2 * INTERVAL_BYTES)
    for offset in range(10):
        store.index.add(store.append(b"x" * INTERVAL_BYTES), offset, offset)
    store.drop_before(6 * INTERVAL_BYTES)
    assert len(store.index) == 4
    assert store.index.floor(store.start_position, store.end_position, 7) == 7 * INTERVAL_BYTES
    store.drop_before(store.end_position)
    assert len(store.index) == 0


def test_bytes_of_a_dropped_segment_stay_readable_until_their_file_range_is_released() -> None:
    budget = MemoryBudget(PLENTY)
    store = Store(budget)
    data = random.Random(1).randbytes(300_000)
    store.append(data)
    leased = store.region(1000, 200_000)
    assert isinstance(leased, FileRange)
    store.close()
    store.append(b"z" * 300_000)
    assert (len(leased), leased.read()) == (200_000, data[1000:201_000])
    ours, theirs = socket.socketpair()
    with ours, theirs:
        sent = os.sendfile(ours.fileno(), leased.file.fileno(), leased.offset, 5000)
        assert theirs.recv(5000, socket.MSG_WAITALL) == data[1000:6000] and sent == 5000
    bytes_before = budget.used_bytes
    del leased
    assert budget.used_bytes <= bytes_before - 300_000


def test_log_store_frees_segments_that_no_replica_sharing_the_store_still_needs() -> None:
    store = Store(MemoryBudget(PLENTY), segment_bytes=1000)
    first, second = store.add_reader(), store.add_reader()
    store.reader_needs(first, 0)
    for _ in range(10):
        store.append(b"x" * 500)
    store.reader_needs(second, 3000)
    assert store.start_position == 0
    store.reader_needs(first, 2500)
    assert store.start_position == 2000


def test_append_on_a_full_disk_raises_a_storage_error_and_stores_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(MemoryBudget(0))
    store.append(b"a" * 1000)
    real_pwrite = os.pwrite

    def disk_full(fd: int, data: bytes, offset: int) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", disk_full)
    with pytest.raises(StorageError, match="No space left"):
        store.append(b"b" * 1000)
    monkeypatch.setattr(os, "pwrite", real_pwrite)
    assert store.end_position == 1000
    assert store.append(b"c" * 10) == 1000
    assert content(store, 990, 20) == b"a" * 10 + b"c" * 10


def test_append_succeeds_on_retry_after_the_segment_file_could_not_be_created(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.touch()  # a file blocks the path of the folder
    store = Store(MemoryBudget(0), 1000, SegmentFolder(folder, FilePool(MemoryBudget(0))))
    store.flush(0)
    with pytest.raises(StorageError, match="cannot append 5 bytes"):
        store.append(b"hello")
    assert store.end_position == 0
    folder.unlink()
    assert store.append(b"hello") == 0
    assert content(store, 0, 5) == b"hello"
    store.close()
    assert not folder.exists()


def test_log_store_writes_the_rest_of_a_batch_after_a_partial_write_by_the_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = Store(MemoryBudget(0))
    real_pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, offset: real_pwrite(fd, memoryview(data)[:7], offset))
    store.append(b"0123456789" * 3)
    store.append(b"abcdefghij")
    assert content(store, 0, 40) == b"0123456789" * 3 + b"abcdefghij"


def test_partitions_stay_in_memory_when_no_file_descriptors_are_left() -> None:
    budget = MemoryBudget(PLENTY)
    assert budget.file_limit <= resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2
    budget.file_limit = 1
    first, other = Store(budget), Store(budget)
    for store in (first, other):
        for i in range(50):
            store.append(bytes([i]) * 4000)
    assert isinstance(first.region(0, 10), FileRange) and isinstance(other.region(0, 10), bytes)
    assert content(other, 4000 * 49, 4000) == bytes([49]) * 4000
    assert budget.open_files == 1


def test_large_in_memory_segment_is_read_as_a_regular_file_that_sendfile_accepts() -> None:
    store = Store(MemoryBudget(PLENTY))
    store.append(b"x" * 100_000)
    region = store.region(0, 100_000)
    assert isinstance(region, FileRange)
    assert stat.S_ISREG(os.fstat(region.file.fileno()).st_mode) and "b" in region.file.mode


@pytest.mark.parametrize(("allowed", "file_limit"), [(1024, 512), (resource.RLIM_INFINITY, 1 << 19)])
def test_segment_files_use_at_most_half_of_the_file_descriptor_limit(
    allowed: int, file_limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (allowed, allowed))
    assert MemoryBudget(0).file_limit == file_limit


def test_small_partitions_share_a_single_file_when_the_memory_budget_is_used_up() -> None:
    before = open_descriptors()
    budget = MemoryBudget(0)
    stores = [Store(budget) for _ in range(500)]
    for turn in range(5):
        for number, store in enumerate(stores):
            assert store.append(bytes([turn, number & 255]) * 700) == 1400 * turn
    assert budget.open_files == 1
    assert open_descriptors() == before + 1
    for number, store in enumerate(stores):
        assert all(content(store, 1400 * turn, 1400) == bytes([turn, number & 255]) * 700 for turn in range(5))
        store.close()
    assert open_descriptors() == before


def test_6_large_partitions_use_at_most_3_files_if_the_open_file_limit_is_3() -> None:
    """Large partitions beyond the memory budget go into the shared file as well."""
    budget = MemoryBudget(0)
    budget.file_limit = 3
    stores = [Store(budget) for _ in range(6)]
    for store in stores:
        for turn in range(4):
            store.append(bytes([turn]) * SMALL_SEGMENT_BYTES)
    assert budget.open_files <= 3
    for store in stores:
        assert all(
            content(store, SMALL_SEGMENT_BYTES * turn, 10) == bytes([turn]) * 10
            and content(store, SMALL_SEGMENT_BYTES * (turn + 1) - 10, 10) == bytes([turn]) * 10
            for turn in range(4)
        )


def test_space_in_a_shared_file_is_reused_only_after_its_old_bytes_have_been_sent() -> None:
    budget = MemoryBudget(0)
    open_store, store = Store(budget), Store(budget)
    open_store.append(b"k" * 100)
    store.append(b"a" * 100)
    being_sent = store.region(0, 100)
    store.close()
    Store(budget).append(b"b" * 100)
    assert isinstance(being_sent, FileRange) and being_sent.read() == b"a" * 100
    offset = being_sent.offset
    del being_sent
    after = Store(budget)
    after.append(b"c" * 100)
    region = after.region(0, 100)
    assert isinstance(region, FileRange) and region.offset == offset


def test_more_segment_files_than_the_open_file_limit_can_be_written_and_read(tmp_path: Path) -> None:
    budget = MemoryBudget(0)
    pool = FilePool(budget, FEWEST_OPEN)
    stores = [Store(budget, 1000, SegmentFolder(tmp_path / str(i), pool)) for i in range(3 * FEWEST_OPEN)]
    for turn in range(6):
        for number, store in enumerate(stores):
            store.append(bytes([turn, number]) * 200)
    assert budget.open_files == len(pool) == FEWEST_OPEN
    being_sent = stores[0].region(0, 400)
    for number, store in enumerate(stores):
        assert all(content(store, 400 * turn, 400) == bytes([turn, number]) * 200 for turn in range(6))
    stores[0].close()
    assert isinstance(being_sent, FileRange) and being_sent.read() == bytes([0, 0]) * 200
    assert not (tmp_path / "0").exists()
    assert len(list((tmp_path / "1").iterdir())) == 3


def test_segment_file_is_synced_when_its_unflushed_records_reach_flush_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[int] = []
    monkeypatch.setattr(os, "fsync", flushed.append)
    store = Store(MemoryBudget(0), 1000, SegmentFolder(tmp_path / "p", FilePool(MemoryBudget(0))))
    store.flush_append(store.append(b"x" * 100), 50, 0)
    assert flushed == []
    store.flush_state.limit_records = 60
    store.flush_append(store.append(b"x" * 100), 10, 0)
    assert len(flushed) == 1
