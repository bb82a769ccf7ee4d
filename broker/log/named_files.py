"""Segment files with names in a data directory: the pool of open files, and the folder of one partition.

Only the most recently used files are open, up to a fixed number per process; an evicted one is reopened by its name. A `FileRange`
in a response keeps its file open, so eviction and deletion never affect a response that is being sent.
This module does not depend on batches, offsets or topics.
"""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from kafkaproto.broker.log.file_deletion import DelayedDeletion, delete_file_or_log, delete_folder_or_log
from kafkaproto.broker.log.files import MemoryBudget, SegmentFile

_NAME = re.compile(r"(\d{20})\.(log|cleaned)\Z")
FEWEST_OPEN = 8


class FilePool:
    """The open segment files of this process.

    limit: how many files may be open at once, None for half of the file descriptor limit. At least 8 files may always be open. `deletion` deletes
    files after a delay; None if files are deleted at once.
    """

    def __init__(self, budget: MemoryBudget, limit: int | None = None, deletion: DelayedDeletion | None = None) -> None:
        self.deletion = deletion
        self._budget = budget
        self._limit = max(FEWEST_OPEN, budget.file_limit if limit is None else limit)
        self.keeps_segments = False
        """Whether to keep segment files even if no replica needs them.

        True while a change could not be written to the metadata log of the data directory, because this log may still refer to such files.
        """
        self._open: OrderedDict[Path, tuple[SegmentFile, Callable[[Path], None]]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def open(self, path: Path, evicted: Callable[[Path], None]) -> SegmentFile:
        """Return the file at `path`, creating file and folder if needed.

        evicted: a function that is called with the path when the pool closes the file. Raises OSError if the file cannot be opened or created.
        """
        open_file = self._open.get(path)
        if open_file is not None:
            self._open.move_to_end(path)
            return open_file[0]
        while len(self._open) >= self._limit:
            self.release(next(iter(self._open)))
        file = SegmentFile(_open_or_make(path), self._budget, 0)
        self._open[path] = file, evicted
        return file

    def release(self, path: Path) -> None:
        """Remove a file from the pool, and call the function `evicted` given to `open`. The file closes when no response uses it any more."""
        open_file = self._open.pop(path, None)
        if open_file is not None:
            open_file[1](path)


class SegmentOnDisk(NamedTuple):
    """A segment file that an earlier process left in a data directory.

    base: the position of the file's first byte in the partition's store, not an offset. is_cleaned: whether compaction wrote the file.
    """

    path: Path
    base: int
    size_bytes: int
    is_cleaned: bool


class SegmentFolder:
    """The folder of one partition's segment files, which is created together with the first file.

    `delete_delay_ms` is the time after which the file of a deleted segment is deleted (`file.delete.delay.ms`). It may change at any time.
    """

    __slots__ = ("delete_delay_ms", "path", "pool")

    def __init__(self, path: Path, pool: FilePool) -> None:
        self.path = path
        self.pool = pool
        self.delete_delay_ms = 0

    def path_of(self, base: int, is_cleaned: bool) -> Path:
        """Return the path of the file for a segment. base: the segment's first byte in the partition's store. is_cleaned: whether it is compacted."""
        return self.path / f"{base:020d}.{'cleaned' if is_cleaned else 'log'}"

    def segments(self) -> list[SegmentOnDisk]:
        """Return the segment files in the folder, in the order of their positions in the partition's store."""
        segments = []
        if self.path.is_dir():
            for entry in os.scandir(self.path):
                match = _NAME.match(entry.name)
                if match is not None:
                    path, size = Path(entry.path), entry.stat().st_size
                    segments.append(SegmentOnDisk(path, int(match[1]), size, match[2] == "cleaned"))
        return sorted(segments, key=lambda segment: segment.base)

    def delete(self, path: Path) -> bool:
        """Delete the file of a segment, after `delete_delay_ms`. Until then it has another name, so that no process reads it as a part of the log.

        Returns False if the file can be neither renamed nor deleted, which is logged.
        """
        self.pool.release(path)
        deletion = self.pool.deletion
        return delete_file_or_log(path) if deletion is None else deletion.delete_file(path, self.delete_delay_ms)

    def delete_all(self) -> None:
        """Delete the folder of a partition that has been deleted, after `log.segment.delete.delay.ms`. No file of it may be in the pool any more.

        If the folder can be neither renamed nor deleted, this is logged.
        """
        deletion = self.pool.deletion
        if deletion is None:
            delete_folder_or_log(self.path)
        else:
            deletion.delete_folder(self.path)


def _open_or_make(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o644)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, flags, 0o644)


def place_of(folder: SegmentFolder | None) -> str:
    """Return words for error messages that say where the bytes of a partition are stored: the name of its folder, or memory and temporary files.

    folder: the partition's folder in the data directory; None if there is no data directory.
    """
    return "memory and temporary files" if folder is None else f"folder {folder.path.name}"
