"""Delayed deletion of segment files, and of the folders of deleted partitions (`file.delete.delay.ms`).

As in Kafka (`LocalLog.deleteSegmentFiles`, `LogManager.deleteLogs`), a file or folder is renamed at once, so that a restart does not take it for a
part of a log. It is deleted when its delay has passed. A process that stops before leaves it to the next one. This module does not depend on
batches, offsets, topics or open files.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from kafkaproto.broker.runtime.timers import Timers

DELETED_FILE = ".deleted"
DELETED_FOLDER = "-delete"
_FILE = re.compile(r"\d{20}\.(log|cleaned)(\.deleted)?\Z")

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

    def delete_file(self, path: Path, delay_ms: int) -> None:
        """Rename the segment file at `path`, and delete it after `delay_ms`. A missing file is ignored. Raises OSError if it cannot be renamed."""
        renamed_path = path.with_name(path.name + DELETED_FILE)
        try:
            path.rename(renamed_path)
        except FileNotFoundError:
            return
        self._timers.at(self._now_ms() + delay_ms, lambda _: _delete(renamed_path, delete_file))

    def delete_folder(self, path: Path) -> None:
        """Rename the folder of a deleted partition, and delete it after the delay for folders. A missing folder is ignored.

        Raises OSError if the folder cannot be renamed.
        """
        renamed_path = path.with_name(path.name + DELETED_FOLDER)
        if renamed_path.exists():
            delete_folder(renamed_path)  # after a power failure, the same partition may be deleted twice
        with suppress(FileNotFoundError):
            path.rename(renamed_path)
            self.delete_renamed_folder(renamed_path)

    def delete_renamed_folder(self, path: Path) -> None:
        """Delete a folder, which this process or an earlier one has renamed, after the delay for folders. The delay begins now."""
        self._delete_folder_after_delay(path, self._now_ms(), self._now_ms())

    def _delete_folder_after_delay(self, path: Path, renamed_ms: int, now_ms: int) -> None:
        """Delete the folder now if its delay has passed, otherwise when the present delay ends. renamed_ms: the start of the delay."""
        due_ms = renamed_ms + self._folder_delay_ms()
        if now_ms >= due_ms:
            _delete(path, delete_folder)
        else:
            self._timers.at(due_ms, lambda now_ms: self._delete_folder_after_delay(path, renamed_ms, now_ms))


def delete_folder(path: Path) -> None:
    """Delete the segment files in a partition's folder, and the folder if it contains nothing else. Raises OSError if a file cannot be deleted."""
    if path.is_dir():
        for entry in os.scandir(path):
            if _FILE.match(entry.name):
                delete_file(Path(entry.path))
        with suppress(OSError):
            path.rmdir()


def delete_leftovers(path: Path) -> None:
    """Delete the files in a partition's folder that an earlier process has renamed in order to delete them. Raises OSError if this fails."""
    for file_path in path.glob("*" + DELETED_FILE):
        delete_file(file_path)


def delete_file(path: Path) -> None:
    """Delete a file at once. A missing file is ignored. Raises OSError if the file cannot be deleted."""
    with suppress(FileNotFoundError):
        path.unlink()


def _delete(path: Path, delete: Callable[[Path], None]) -> None:
    try:
        delete(path)
    except OSError as error:
        logger.error("%s cannot be deleted: %s; the next start with this data directory tries again", path, error)
