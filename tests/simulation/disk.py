"""The disk below a data directory: its writes can be refused, torn, or be the last write of a process.

It replaces the `os` module in the modules of the broker that write: `broker/log/segments.py`, `broker/log/named_files.py` and
`broker/persistence/`. It can also kill the process before a file or folder is deleted, or renamed in order to be deleted. Written data stay, as
after `kill -9`: the process dies, not the power. It does not simulate a power failure (by default nothing is fsynced, as in Kafka) or one disk per
broker, because all brokers of a cluster share one data directory. Independent of the contents of the files.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, NoReturn
from unittest.mock import patch

from kafkaproto.broker.log import file_deletion, named_files, segments
from kafkaproto.broker.log.file_deletion import DelayedDeletion
from kafkaproto.broker.persistence import directory
from kafkaproto.broker.persistence import wal as facts
from kafkaproto.broker.persistence.directory import DataDirectory

MEMORY = Path("/dev/shm")
FULL, BROKEN = errno.ENOSPC, errno.EIO


class Killed(BaseException):
    """The writing process is dead. No code catches this, as with `kill -9`."""


class Disk:
    """A disk. refuses: the errno of every write, or 0 if writes succeed. was_torn: a torn write has not been truncated yet."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._folder = tempfile.mkdtemp(prefix="simulated-", dir=MEMORY if MEMORY.is_dir() else None)
        self.refuses = 0
        self.was_torn = False
        self._writes_left: int | None = None
        self._is_dead = False
        self._open: set[int] = set()
        self._stack = ExitStack()
        self._stack.callback(shutil.rmtree, self._folder)
        self._stack.enter_context(self._in_place())

    @property
    def path(self) -> Path:
        """Return the data directory."""
        return Path(self._folder, "data")

    def close(self) -> None:
        """Delete the data directory."""
        self._bury()
        self._stack.close()

    def is_to_blame(self, complaint: str) -> bool:
        """Return whether a complaint of the broker is about a refused write."""
        return self.refuses != 0 and (os.strerror(self.refuses) in complaint or "bytes were written" in complaint)

    # ---- faults ------------------------------------------------------------------------------------------------------------------

    def kill_at_write(self, number: int) -> None:
        """Kill the process in the middle of the write with this number from now on, or just before or after it."""
        self._writes_left = number

    def spare(self) -> None:
        """Cancel the planned kill."""
        self._writes_left = None

    def next_process(self) -> None:
        """Release the locks and descriptors of the previous process, as the kernel would do, for the next one."""
        self._bury()
        self._writes_left = None
        self._is_dead = False

    def _bury(self) -> None:
        for fd in self._open:
            os.close(fd)
        self._open.clear()

    # ---- in place of `os` ----------------------------------------------------------------------------------------------------

    @contextmanager
    def _in_place(self) -> Iterator[None]:
        seen = SimpleNamespace(**vars(os))
        seen.pwrite, seen.ftruncate = self._pwrite, self._ftruncate
        seen.open, seen.close = self._open_file, self._close_file
        opening = SimpleNamespace(**vars(os))
        opening.open = self._open_segment
        with (
            patch.object(segments, "os", seen),
            patch.object(facts, "os", seen),
            patch.object(directory, "os", seen),
            patch.object(named_files, "os", opening),
            patch.object(file_deletion, "delete_file", self._while_alive(file_deletion.delete_file)),
            patch.object(DelayedDeletion, "delete_file", self._while_alive(DelayedDeletion.delete_file)),
            patch.object(DelayedDeletion, "delete_folder", self._while_alive(DelayedDeletion.delete_folder)),
            patch.object(DataDirectory, "facts", property(lambda d: self._facts_path(d.path / "facts"))),
        ):
            yield

    def _while_alive(self, change: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that changes the disk like `change`, unless the process is dead or dies before."""

        def change_while_alive(*args: Any) -> Any:
            self._before_write()
            return change(*args)

        return change_while_alive

    def _before_write(self) -> None:
        """Count a change of the disk and kill the process before it, if this is planned."""
        if self._is_dead or self._is_last_write():
            self._die()

    def _is_last_write(self) -> bool:
        if self._writes_left is None:
            return False
        self._writes_left -= 1
        return self._writes_left <= 0

    def _die(self) -> NoReturn:
        self._is_dead = True
        raise Killed

    def _refuse(self) -> NoReturn:
        raise OSError(self.refuses, os.strerror(self.refuses))

    def _pwrite(self, fd: int, data: Any, offset: int) -> int:
        if self._is_dead:
            raise Killed
        if self.refuses and len(data) > 1 and self._chance.random() < 0.5:
            part = os.pwrite(fd, memoryview(data)[: len(data) // 2], offset)
            if self.refuses == FULL:
                return part  # all that fits on the disk
        if self.refuses:
            self._refuse()
        if self._is_last_write():
            part = self._chance.choice(
                [0, 1, len(data) // 2, len(data) - 1, len(data), self._chance.randrange(len(data))]
            )
            os.pwrite(fd, memoryview(data)[:part], offset)
            self.was_torn |= 0 < part < len(data)
            self._die()
        return os.pwrite(fd, data, offset)

    def _ftruncate(self, fd: int, size: int) -> None:
        if self._is_dead or self._is_last_write():
            self.was_torn = True  # the bytes to truncate are still in the file
            self._die()
        if self.refuses == BROKEN:
            self.was_torn = True
            self._refuse()
        os.ftruncate(fd, size)

    def _open_file(self, path: Any, flags: int, mode: int = 0o777) -> int:
        """Open a file and remember to close it if its process dies."""
        self._before_write()
        fd = os.open(path, flags, mode)
        self._open.add(fd)
        return fd

    def _close_file(self, fd: int) -> None:
        self._open.discard(fd)
        os.close(fd)

    def _open_segment(self, path: Path, flags: int, mode: int = 0o777) -> int:
        """Open the file of a segment; a new one needs disk space."""
        if not path.exists():
            self._before_write()
            if self.refuses:
                self._refuse()
        return os.open(path, flags, mode)

    def _facts_path(self, path: Path) -> Path:
        """Return the path of the metadata log. Writing or renaming a new log through it can fail or kill the process."""
        disk = self

        class WriteAheadLog(type(path)):  # type: ignore[misc]
            def open(self, mode: str = "r", *args: Any, **more: Any) -> Any:
                if "w" in mode:
                    disk._before_write()
                    if disk.refuses:
                        disk._refuse()
                return _Dying(super().open(mode, *args, **more), disk) if "w" in mode else super().open(mode, *args)

            def rename(self, target: Any) -> Any:
                disk._before_write()
                return super().rename(target)

        return WriteAheadLog(path)


class _Dying:
    """A file written in parts, each of which may be the last."""

    def __init__(self, file: Any, disk: Disk) -> None:
        self._file = file
        self._disk = disk

    def write(self, data: bytes) -> None:
        self._disk._before_write()
        self._file.write(data)

    def __enter__(self) -> _Dying:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._file.close()
