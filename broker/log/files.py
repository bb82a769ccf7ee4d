"""Segment files of clusters that have no data directory: files in memory within the memory budget, then temporary files on disk.

A file closes when the last reference to it is gone. A response that is still being sent refers to its file by a `FileRange`. The response can
therefore send the bytes even if the log has dropped them.

A memory file returns its bytes to the memory budget when it closes, not before. This module does not depend on positions of a log, batches or
offsets.
"""

from __future__ import annotations

import os
import resource
import tempfile
from io import FileIO

_PAGE_BYTES = 4096


class MemoryBudget:
    """Counts the bytes of records in memory and the open segment files of a cluster, and holds the limit of each count.

    Records in memory files count like other records in memory. `file_limit` is half of the process's descriptor limit, so that segment files never
    take the descriptors that connections need.
    """

    __slots__ = ("file_limit", "limit_bytes", "open_files", "spill", "used_bytes")

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.spill = Spill(self)
        self.used_bytes = 0
        self.file_limit = _descriptors_allowed() // 2
        self.open_files = 0

    def reserve(self, n: int) -> bool:
        """Reserve `n` bytes of the memory budget. Returns True, or False without reserving any bytes if fewer than `n` are left."""
        if self.used_bytes + n > self.limit_bytes:
            return False
        self.used_bytes += n
        return True

    def release(self, n: int) -> None:
        self.used_bytes -= n


class SegmentFile(FileIO):
    """An open segment file, usable with `os.pwrite`, `os.pread` and `loop.sendfile`.

    `reserved_bytes` is how much of the memory budget the file uses (0 for a file on disk). Every read and write passes a byte offset in the file.
    """

    def __init__(self, fd: int, budget: MemoryBudget, reserved_bytes: int) -> None:
        super().__init__(fd, "r+b")
        self.budget = budget
        self.reserved_bytes = reserved_bytes
        budget.open_files += 1

    def reserve(self, n: int) -> bool:
        """Reserve memory budget for `n` more bytes of this file, rounded up to whole memory pages.

        Returns False, and reserves nothing, if the budget is used up.
        """
        n = _whole_pages(n)
        if not self.budget.reserve(n):
            return False
        self.reserved_bytes += n
        return True

    def trim(self, size_bytes: int) -> None:
        """Give the reserved bytes beyond `size_bytes` (rounded up to whole pages) back to the memory budget, because the file no longer grows."""
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
    """A range of `length` bytes of `file`, from byte `offset` of the file on. A response sends it with `loop.sendfile` or reads it with `pread`.

    lease: the part of the spill file that contains the range, if `file` is the spill file, which small segments share; None for any other file. This
    part is not reused while this object refers to it.
    """

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
    """A part of the spill file, which small segments share: `size` bytes of `file` from byte `offset` on.

    When this object is garbage-collected, this part of the file becomes free, and another segment may use it.
    """

    __slots__ = ("file", "offset", "size", "spill")

    def __init__(self, spill: Spill, file: SegmentFile, offset: int, size: int) -> None:
        self.spill = spill
        self.file = file
        self.offset = offset
        self.size = size

    def __del__(self) -> None:
        self.spill.give_back(self)


class Spill:
    """The spill file: one unlinked file that small segments share when memory or descriptors are used up."""

    __slots__ = ("_budget", "_end", "_file", "_free", "_lent")

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._file: SegmentFile | None = None
        self._free: dict[int, list[int]] = {}
        self._end = 0
        self._lent = 0

    def lend(self, size: int) -> Piece:
        """Return a free part of the spill file: at least `size` bytes, rounded up to a power of two and to whole memory pages.

        Small segments share the spill file. Raises OSError if it does not exist yet and cannot be created.
        """
        size = 1 << (max(size, _PAGE_BYTES) - 1).bit_length()
        if self._file is None:
            self._file = SegmentFile(_unlinked_descriptor(tempfile.gettempdir()), self._budget, 0)
        self._lent += 1
        free_offsets = self._free.get(size)
        if free_offsets:
            return Piece(self, self._file, free_offsets.pop(), size)
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
    """Return a new file in memory (memfd), and reserve `reserve_bytes` of the memory budget for it.

    Returns None if memory or descriptors are used up, or if the system has no memfd (macOS).
    """
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
    """Return a new file without a name in the temporary folder. Because it has no name, `kill -9` leaves no file behind.

    Raises OSError if the file cannot be created. budget: counts the file's bytes and descriptor against the limits of this process.
    """
    return SegmentFile(_unlinked_descriptor(tempfile.gettempdir()), budget, 0)


def _unlinked_descriptor(folder: str) -> int:
    if hasattr(os, "O_TMPFILE"):
        try:
            return os.open(folder, os.O_RDWR | os.O_TMPFILE | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError:
            pass  # the file system lacks O_TMPFILE: create a named file and unlink it at once
    fd, path = tempfile.mkstemp(prefix="kafka-segment-", dir=folder)
    os.unlink(path)
    return fd


def _whole_pages(n: int) -> int:
    return (n + _PAGE_BYTES - 1) // _PAGE_BYTES * _PAGE_BYTES


def _descriptors_allowed() -> int:
    soft_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 1 << 20 if soft_limit == resource.RLIM_INFINITY else soft_limit
