"""Delayed deletion of segment files, and of the folders of deleted partitions (`file.delete.delay.ms`).

As in Kafka (`LocalLog.deleteSegmentFiles`, `LogManager.deleteLogs`), a file or folder is renamed at once, so that a restart does not take it for a
part of a log. It is deleted when its delay has passed. If the process stops before, the next process with the data directory deletes it. If a file or
folder cannot be deleted, this is logged, and the next start tries again. This module does not depend on batches, offsets, topics or open files.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from kafkaproto.broker.runtime.timers import Timer, Timers

DELETED_FILE = ".deleted"
DELETED_FOLDER = "-delete"
_FILE = re.compile(r"\d{20}\.(log|cleaned)(\.deleted)?\Z")
_RENAMED_FILE = re.compile(r"\d{20}\.(log|cleaned)\.deleted\Z")

logger = logging.getLogger("kafkaproto.log")


class DelayedDeletion:
    """Renames files and folders of a data directory, and deletes them later.

    timers: schedule the deletions. now_ms: a function that returns the current time. folder_delay_ms: a function that returns the present delay in ms
    between the deletion of a partition and the deletion of its folder (`log.segment.delete.delay.ms`).
    """

    def __init__(self, timers: Timers, now_ms: Callable[[], int], folder_delay_ms: Callable[[], int]) -> None:
        self._timers = timers
        self._now_ms = now_ms
        self._folder_delay_ms = folder_delay_ms
        self._waiting: dict[Path, Timer] = {}
        """Maps each renamed file or folder to the timer that deletes it."""
        self._is_closed = False

    def delete_file(self, path: Path, delay_ms: int) -> bool:
        """Rename the segment file at `path`, and delete it after `delay_ms`. Returns False if this fails and the file keeps its name.

        With the delay 0, or if it cannot be renamed, the file is deleted at once. A missing file is ignored. After `close`, does nothing and returns
        True.
        """
        if self._is_closed:
            return True
        if delay_ms > 0:
            renamed_path = path.with_name(path.name + DELETED_FILE)
            with suppress(OSError):
                path.rename(renamed_path)
                self._wait(renamed_path, self._now_ms() + delay_ms, lambda _: self._delete(renamed_path))
                return True
        return delete_file_or_log(path)

    def delete_folder(self, path: Path) -> None:
        """Rename the folder of a deleted partition, and delete it after the delay for folders. A missing folder is ignored.

        If it cannot be renamed, the folder is deleted at once. Does nothing after `close`.
        """
        if self._is_closed:
            return
        renamed_path = path.with_name(path.name + DELETED_FOLDER)
        try:
            if renamed_path.exists():
                delete_folder(renamed_path)  # after a power failure, the same partition may be deleted twice
            path.rename(renamed_path)
        except OSError:
            delete_folder_or_log(path)
        else:
            self.delete_renamed_folder(renamed_path)

    def delete_renamed_folder(self, path: Path) -> None:
        """Delete a folder, which this process or an earlier one has renamed, after the delay for folders. The delay begins now."""
        self._delete_folder_after_delay(path, self._now_ms(), self._now_ms())

    def delete_all_now(self) -> None:
        """Delete all renamed files and folders at once, although their delays have not passed."""
        for path in list(self._waiting):
            self._delete(path)

    def close(self) -> None:
        """Delete nothing any more: another process may use the data directory from now on. Renamed files and folders are left to it."""
        self._is_closed = True
        for timer in self._waiting.values():
            timer.cancel()
        self._waiting.clear()

    def _delete_folder_after_delay(self, path: Path, renamed_ms: int, now_ms: int) -> None:
        """Delete a renamed folder if its delay has passed, otherwise check again when the present delay ends. renamed_ms: start of the delay."""
        due_ms = renamed_ms + self._folder_delay_ms()
        if now_ms >= due_ms:
            self._delete(path)
        else:
            self._wait(path, due_ms, lambda now_ms: self._delete_folder_after_delay(path, renamed_ms, now_ms))

    def _wait(self, path: Path, at_ms: int, act: Callable[[int], None]) -> None:
        """Call `act` at the time `at_ms`. Cancels the timer of an earlier file or folder at `path`, which the present one has replaced."""
        self._cancel(path)
        self._waiting[path] = self._timers.at(at_ms, act)

    def _cancel(self, path: Path) -> None:
        timer = self._waiting.pop(path, None)
        if timer is not None:
            timer.cancel()

    def _delete(self, path: Path) -> None:
        self._cancel(path)
        if path.name.endswith(DELETED_FOLDER):
            delete_folder_or_log(path)
        else:
            delete_file_or_log(path)


def delete_folder(path: Path) -> None:
    """Delete the segment files in a partition's folder, and the folder if it contains nothing else. Raises OSError if a file cannot be deleted."""
    if path.is_dir():
        for name in os.listdir(path):
            if _FILE.match(name):
                delete_file(path / name)
        with suppress(OSError):
            path.rmdir()


def delete_folder_or_log(path: Path) -> bool:
    """Delete a partition's folder like `delete_folder`. If this fails, log it and return False: the next start tries again."""
    return _delete_or_log(path, delete_folder)


def delete_leftovers(path: Path) -> None:
    """Delete the segment files in a partition's folder that an earlier process has renamed in order to delete them. A failure is logged.

    Raises OSError if the folder cannot be read.
    """
    if path.is_dir():
        for name in os.listdir(path):
            if _RENAMED_FILE.match(name):
                delete_file_or_log(path / name)


def delete_file(path: Path) -> None:
    """Delete a file at once. A missing file is ignored. Raises OSError if the file cannot be deleted."""
    with suppress(FileNotFoundError):
        path.unlink()


def delete_file_or_log(path: Path) -> bool:
    """Delete a file at once. If this fails, log it and return False: the next start tries again. A missing file is ignored."""
    return _delete_or_log(path, delete_file)


def _delete_or_log(path: Path, delete: Callable[[Path], None]) -> bool:
    try:
        delete(path)
    except OSError as error:
        logger.error("%s cannot be deleted: %s; the next start with this data directory tries again", path, error)
        return False
    return True
