"""The disk below a data directory: a folder whose writes can be refused, torn, or be the last thing that a process ever did.

It stands between the broker's modules that write (`broker/log/segments.py`, `broker/log/named_files.py`, `broker/persistence/`) and the
operating system, by replacing the `os` that they see. What was written stays, as after `kill -9`: the process dies, not the power. What cannot be
shown: a power cut (nothing is fsynced by default, in Kafka neither), and a disk of its own for each broker, as all brokers of a cluster
share one data directory. Must never know what is written, or what is true of it.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, NoReturn
from unittest.mock import patch

from kafkaproto.broker.log import named_files, segments
from kafkaproto.broker.log.named_files import SegmentFolder
from kafkaproto.broker.persistence import directory
from kafkaproto.broker.persistence import wal as facts
from kafkaproto.broker.persistence.directory import DataDirectory

MEMORY = Path("/dev/shm")
FULL, BROKEN = errno.ENOSPC, errno.EIO


class Killed(BaseException):
    """The process that wrote is dead. Nothing catches it, as nothing catches `kill -9`."""


class Disk:
    """refuses: the errno that every write gets, 0 while the disk is well. was_torn: half a write was left there, and not yet cut."""

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
        """The data directory."""
        return Path(self._folder, "data")

    def close(self) -> None:
        """Nothing was ever there."""
        self._bury()
        self._stack.close()

    def is_to_blame(self, complaint: str) -> bool:
        """Whether somebody complains about what it refuses."""
        return self.refuses != 0 and (os.strerror(self.refuses) in complaint or "bytes were written" in complaint)

    # ---- what happens to it --------------------------------------------------------------------------------------------------

    def kill_at_write(self, number: int) -> None:
        """The process dies in the middle of its write `number` from now on, or just before, or just after."""
        self._writes_left = number

    def spare(self) -> None:
        """It does not."""
        self._writes_left = None

    def next_process(self) -> None:
        """Another process finds what the one before has left: it held locks and descriptors, which the kernel takes back."""
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
        unlink = SegmentFolder.unlink

        def unlink_while_alive(folder: SegmentFolder, path: Path) -> None:
            self._before_write()
            unlink(folder, path)

        with (
            patch.object(segments, "os", seen),
            patch.object(facts, "os", seen),
            patch.object(directory, "os", seen),
            patch.object(named_files, "os", opening),
            patch.object(SegmentFolder, "unlink", unlink_while_alive),
            patch.object(DataDirectory, "facts", property(lambda d: self._facts_path(d.path / "facts"))),
        ):
            yield

    def _before_write(self) -> None:
        """Something on the disk is about to change: the process may have died before."""
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
                return part  # the last that it had room for
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
            self.was_torn = True  # what was to be cut is still there
            self._die()
        if self.refuses == BROKEN:
            self.was_torn = True
            self._refuse()
        os.ftruncate(fd, size)

    def _open_file(self, path: Any, flags: int, mode: int = 0o777) -> int:
        """A file that its module closes; a process that is dead never will."""
        self._before_write()
        fd = os.open(path, flags, mode)
        self._open.add(fd)
        return fd

    def _close_file(self, fd: int) -> None:
        self._open.discard(fd)
        os.close(fd)

    def _open_segment(self, path: Path, flags: int, mode: int = 0o777) -> int:
        """A segment's file; a new one takes room."""
        if not path.exists():
            self._before_write()
            if self.refuses:
                self._refuse()
        return os.open(path, flags, mode)

    def _facts_path(self, path: Path) -> Path:
        """Where facts are written anew: to a file beside them, which then takes their name."""
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
    """A file that is written in parts, each of which may be the last."""

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
