"""The folder of a cluster's data: its lock, its format and its files.

lock                                               locked by the process that uses the folder; contains its process id
meta.json                                          format and cluster id
facts                                              the metadata log, see `wal` and `records`
topics/<topic id>-<partition>/<position>.log       a segment
topics/<topic id>-<partition>/<position>.cleaned   a segment that compaction wrote
topics/<topic id>-<partition>/<name>.deleted       a file of a deleted segment, see `file_deletion`
topics/<topic id>-<partition>-delete               the folder of a deleted partition

The position of a segment is the number of bytes that were appended to the partition before the segment's first byte.

This module does not depend on topics, batches or metadata records.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from pathlib import Path
from typing import Any

from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.log.file_deletion import DELETED_FOLDER

FORMAT = 1
OWN_NAMES = frozenset({"lock", "meta.json", "meta.json.new", "facts", "facts.new", "topics"})
_PARTITION = re.compile(r"[0-9a-f]{32}-\d+")
EXAMPLE = "for example --data-dir ./kafka-data"


class DataDirectory:
    """An open data directory, locked for this process until `close`. Raises ConfigError if it cannot be used.

    new_cluster_id: the cluster id to store in a new folder. The attribute `cluster_id` is the stored id, of a new or an existing folder.
    """

    def __init__(self, path: str | os.PathLike[str], new_cluster_id: str) -> None:
        self.path = Path(path)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise ConfigError(f"data directory {path}: that is a file; give a folder, {EXAMPLE}") from None
        except OSError as error:
            raise ConfigError(
                f"data directory {path} cannot be created: {error.strerror}; give another folder, {EXAMPLE}"
            ) from None
        self._check_content()
        self._lock = self._lock_or_refuse()
        try:
            self.cluster_id = self._meta(new_cluster_id)
            (self.path / "topics").mkdir(exist_ok=True)
        except OSError as error:
            self.close()
            raise ConfigError(
                f"data directory {path} cannot be used: {error.strerror}; give another folder, {EXAMPLE}"
            ) from None
        except BaseException:
            self.close()
            raise

    @property
    def facts(self) -> Path:
        return self.path / "facts"

    def partition(self, topic_id: bytes, index: int) -> Path:
        return self.path / "topics" / f"{topic_id.hex()}-{index}"

    def partitions(self) -> list[Path]:
        """Return the folders of all partitions, including partitions of topics that do not exist any more.

        Folders whose names do not have the form `<topic id>-<partition>` are ignored.
        """
        return sorted(path for path in (self.path / "topics").iterdir() if _PARTITION.fullmatch(path.name))

    def deleted_partitions(self) -> list[Path]:
        """Return the renamed folders of deleted partitions, which are deleted after a delay."""
        paths = (self.path / "topics").glob("*" + DELETED_FOLDER)
        return sorted(path for path in paths if _PARTITION.fullmatch(path.name.removesuffix(DELETED_FOLDER)))

    def close(self) -> None:
        """Release the lock of the data directory."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _check_content(self) -> None:
        try:
            names = {entry.name for entry in self.path.iterdir()}
        except OSError as error:
            raise ConfigError(
                f"data directory {self.path} cannot be read: {error.strerror}; give another folder, {EXAMPLE}"
            ) from None
        if not names <= OWN_NAMES and "meta.json" not in names:
            foreign_file = min(names - OWN_NAMES)
            raise ConfigError(
                f"data directory {self.path} contains files that kafkaproto did not write, such as {foreign_file}; give an empty folder, {EXAMPLE}"
            )

    def _lock_or_refuse(self) -> int:
        try:
            lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise ConfigError(
                f"data directory {self.path} cannot be written: {error.strerror}; give another folder, {EXAMPLE}"
            ) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(lock, 20, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(lock)
            raise ConfigError(
                f"data directory {self.path} is in use by process {holder}; stop it or give another folder, {EXAMPLE}"
            ) from None
        try:
            os.ftruncate(lock, 0)
            os.pwrite(lock, str(os.getpid()).encode(), 0)
        except OSError as error:
            os.close(lock)
            raise ConfigError(
                f"data directory {self.path} cannot be written: {error.strerror}; give another folder, {EXAMPLE}"
            ) from None
        return lock

    def _meta(self, new_cluster_id: str) -> str:
        path = self.path / "meta.json"
        if not path.exists():
            new_path = path.with_name("meta.json.new")
            new_path.write_text(json.dumps({"format": FORMAT, "cluster_id": new_cluster_id}) + "\n")
            new_path.rename(path)
            return new_cluster_id
        try:
            meta: dict[str, Any] = json.loads(path.read_text())
            version, cluster_id = int(meta["format"]), str(meta["cluster_id"])
        except (ValueError, KeyError, TypeError):
            raise ConfigError(
                f"data directory {self.path}: meta.json was not written by kafkaproto; give an empty folder, {EXAMPLE}"
            ) from None
        if version > FORMAT:
            raise ConfigError(
                f"data directory {self.path} has format {version}; this release reads up to {FORMAT}; "
                f"use a newer kafkaproto or an empty folder, {EXAMPLE}"
            )
        return cluster_id
