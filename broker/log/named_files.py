"""Segment files with names, below a data directory: which of them are open, and the folder of one partition.

Only the most recently used are open, a fixed number in this process; an evicted one is opened again by its name. A `FileRange`
in a response holds its file by itself, so eviction and unlinking never harm what is being sent.
Must never know: batches, offsets, whose partition it is.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from kafkaproto.broker.log.files import MemoryBudget, SegmentFile

_NAME = re.compile(r"(\d{20})\.(log|cleaned)\Z")
FEWEST_OPEN = 8


class FilePool:
    """Holds open at most half of the descriptors that the process may have."""

    def __init__(self, budget: MemoryBudget, limit: int | None = None) -> None:
        self._budget = budget
        self._limit = max(FEWEST_OPEN, budget.file_limit if limit is None else limit)
        self.keeps_segments = False
        """While this is set, no segment is given back: the next process could not know that it is not needed."""
        self._open: OrderedDict[Path, tuple[SegmentFile, Callable[[Path], None]]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def open(self, path: Path, evicted: Callable[[Path], None]) -> SegmentFile:
        """The file at `path`, made with its folder if need be. `evicted` is called when it is no longer held. Raises OSError."""
        held = self._open.get(path)
        if held is not None:
            self._open.move_to_end(path)
            return held[0]
        while len(self._open) >= self._limit:
            self.release(next(iter(self._open)))
        file = SegmentFile(_open_or_make(path), self._budget, 0)
        self._open[path] = file, evicted
        return file

    def release(self, path: Path) -> None:
        """Hold this file no longer; it closes with the last response that sends of it."""
        held = self._open.pop(path, None)
        if held is not None:
            held[1](path)


class SegmentOnDisk(NamedTuple):
    """A segment's file: the position of its first byte, its size, and whether compaction wrote it."""

    path: Path
    base: int
    size_bytes: int
    is_cleaned: bool


class SegmentFolder:
    """The folder of one partition. It is made with its first file."""

    __slots__ = ("path", "pool")

    def __init__(self, path: Path, pool: FilePool) -> None:
        self.path = path
        self.pool = pool

    def path_of(self, base: int, is_cleaned: bool) -> Path:
        """Where the segment lies that begins at position `base`."""
        return self.path / f"{base:020d}.{'cleaned' if is_cleaned else 'log'}"

    def segments(self) -> list[SegmentOnDisk]:
        """What is there, in the order of positions."""
        found = []
        if self.path.is_dir():
            for entry in os.scandir(self.path):
                match = _NAME.match(entry.name)
                if match is not None:
                    path, size = Path(entry.path), entry.stat().st_size
                    found.append(SegmentOnDisk(path, int(match[1]), size, match[2] == "cleaned"))
        return sorted(found, key=lambda segment: segment.base)

    def unlink(self, path: Path) -> None:
        self.pool.release(path)
        with contextlib.suppress(FileNotFoundError):
            path.unlink()

    def remove(self) -> None:
        """The partition is gone: its files and its folder, if nothing that is not ours lies in it."""
        for segment in self.segments():
            self.unlink(segment.path)
        with contextlib.suppress(OSError):
            self.path.rmdir()


def _open_or_make(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o644)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, flags, 0o644)
