"""Segment files: memory files within a budget, unlinked temporary files beyond it, and ranges of them.

A file closes when the last reference goes: a `FileRange` in a response that is still being sent is the lease that keeps
dropped bytes readable, and what a memory file took from the budget comes back in that moment, not before.
Must never know: positions of a log, batches, offsets.
"""

from __future__ import annotations

import os
import resource
import tempfile
from io import FileIO

_PAGE_BYTES = 4096


class MemoryBudget:
    """How many bytes of records may lie in memory, in this process, and how many segment files may be open.

    Small partitions in plain memory and memory files count alike. `file_limit` is half of what the process may open,
    so that segment files never take the descriptors that connections need.
    """

    __slots__ = ("file_limit", "limit_bytes", "open_files", "spill", "used_bytes")

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.spill = Spill(self)
        self.used_bytes = 0
        self.file_limit = _descriptors_allowed() // 2
        self.open_files = 0

    def reserve(self, n: int) -> bool:
        """Take `n` bytes; False (and nothing taken) if they are not there."""
        if self.used_bytes + n > self.limit_bytes:
            return False
        self.used_bytes += n
        return True

    def release(self, n: int) -> None:
        self.used_bytes -= n


class SegmentFile(FileIO):
    """An open file without a name, usable with `os.pwrite`, `os.pread` and `loop.sendfile`.

    `reserved_bytes` is what it holds of the budget (0 for a file on disk). Its own file position means nothing.
    """

    def __init__(self, fd: int, budget: MemoryBudget, reserved_bytes: int) -> None:
        super().__init__(fd, "r+b")
        self.budget = budget
        self.reserved_bytes = reserved_bytes
        budget.open_files += 1

    def reserve(self, n: int) -> bool:
        """Take `n` more bytes of the budget for this file, in whole pages: that is what it occupies."""
        n = _whole_pages(n)
        if not self.budget.reserve(n):
            return False
        self.reserved_bytes += n
        return True

    def trim(self, size_bytes: int) -> None:
        """Nothing more will be written: keep only what `size_bytes` take, in whole pages."""
        surplus = self.reserved_bytes - _whole_pages(size_bytes)
        if surplus > 0:
            self.budget.release(surplus)
            self.reserved_bytes -= surplus

    def close(self) -> None:
        if not self.closed:
            super().close()
            self.budget.open_files -= 1
            self.budget.release(self.reserved_bytes)
            self.reserved_bytes = 0

    def __del__(self) -> None:
        self.close()


class FileRange:
    """`length` bytes of `file` from `offset` on: what a response sends by `loop.sendfile` or reads by `pread`."""

    __slots__ = ("file", "lease", "length", "offset")

    def __init__(self, file: SegmentFile, offset: int, length: int, lease: Piece | None = None) -> None:
        self.file = file
        self.offset = offset
        self.length = length
        self.lease = lease

    def __len__(self) -> int:
        return self.length

    def read(self) -> bytes:
        return os.pread(self.file.fileno(), self.length, self.offset)


class Piece:
    """`size` bytes of the spill file from `offset` on. They can be lent again when the last reference goes."""

    __slots__ = ("file", "offset", "size", "spill")

    def __init__(self, spill: Spill, file: SegmentFile, offset: int, size: int) -> None:
        self.spill = spill
        self.file = file
        self.offset = offset
        self.size = size

    def __del__(self) -> None:
        self.spill.give_back(self)


class Spill:
    """One unlinked file that lends pieces to partitions which are not worth a file of their own once memory is used up."""

    __slots__ = ("_budget", "_end", "_file", "_free", "_lent")

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._file: SegmentFile | None = None
        self._free: dict[int, list[int]] = {}
        self._end = 0
        self._lent = 0

    def lend(self, size: int) -> Piece:
        """A piece of at least `size` bytes: a power of two, of whole pages. Raises OSError."""
        size = 1 << (max(size, _PAGE_BYTES) - 1).bit_length()
        if self._file is None:
            self._file = SegmentFile(_unlinked_descriptor(tempfile.gettempdir()), self._budget, 0)
        self._lent += 1
        free = self._free.get(size)
        if free:
            return Piece(self, self._file, free.pop(), size)
        offset, self._end = self._end, self._end + size
        return Piece(self, self._file, offset, size)

    def give_back(self, piece: Piece) -> None:
        self._lent -= 1
        if self._lent:
            self._free.setdefault(piece.size, []).append(piece.offset)
        else:
            self._file, self._end = None, 0
            self._free.clear()


def open_memory_file(budget: MemoryBudget, reserve_bytes: int) -> SegmentFile | None:
    """A memory file with `reserve_bytes` of the budget; None without memory, descriptors, or memfd (macOS)."""
    reserve_bytes = _whole_pages(reserve_bytes)
    if not hasattr(os, "memfd_create") or not budget.reserve(reserve_bytes):
        return None
    try:
        fd = os.memfd_create("kafka-segment", os.MFD_CLOEXEC)
    except OSError:
        budget.release(reserve_bytes)
        return None
    return SegmentFile(fd, budget, reserve_bytes)


def open_temporary_file(budget: MemoryBudget) -> SegmentFile:
    """A file in the temporary folder that has no name, so that `kill -9` leaves nothing. Raises OSError."""
    return SegmentFile(_unlinked_descriptor(tempfile.gettempdir()), budget, 0)


def _unlinked_descriptor(folder: str) -> int:
    if hasattr(os, "O_TMPFILE"):
        try:
            return os.open(folder, os.O_RDWR | os.O_TMPFILE | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError:
            pass  # a file system without O_TMPFILE: make a name and take it away at once
    fd, path = tempfile.mkstemp(prefix="kafka-segment-", dir=folder)
    os.unlink(path)
    return fd


def _whole_pages(n: int) -> int:
    return (n + _PAGE_BYTES - 1) // _PAGE_BYTES * _PAGE_BYTES


def _descriptors_allowed() -> int:
    soft_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 1 << 20 if soft_limit == resource.RLIM_INFINITY else soft_limit
