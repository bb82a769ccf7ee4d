"""The metadata log: persists a cluster's changes, and restores the cluster at the start.

`note` writes a change that must survive. If the write fails, `note` raises, and the change must not be made. `note_if_possible` writes a change that
cannot be rejected, such as an election that has already happened, or a change that the next process can also derive from the segment files. If the
write of such a change fails, the whole log is rewritten later. Until the rewrite succeeds, no batches can be appended to partitions.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.log.errors import StorageError
from kafkaproto.broker.log.file_deletion import DelayedDeletion, delete_folder_or_log
from kafkaproto.broker.log.files import MemoryBudget
from kafkaproto.broker.log.named_files import FilePool, SegmentFolder
from kafkaproto.broker.log.producer_state import ProducerEntry
from kafkaproto.broker.log.replica_log import LogState
from kafkaproto.broker.log.store import Store
from kafkaproto.broker.persistence import records as records
from kafkaproto.broker.persistence.directory import DataDirectory
from kafkaproto.broker.persistence.records import MetadataState
from kafkaproto.broker.persistence.recovery import LogStart, recover
from kafkaproto.broker.persistence.wal import MetadataRecord, WriteAheadLog
from kafkaproto.error_codes import ErrorCode

RETRY_MS = 60_000
"""The time in ms between two attempts to shorten the metadata log if the first one has failed."""

logger = logging.getLogger("kafkaproto.persistence")


class SnapshotLimits(NamedTuple):
    """When the metadata log is rewritten, which makes it shorter. Kafka then writes a snapshot of its metadata (`SnapshotGenerator`).

    growth_bytes: the log is rewritten when it has grown by this number of bytes since the last rewrite, and has also doubled in size
    (`metadata.log.max.record.bytes.between.snapshots`). interval_ms: the log is also rewritten if a change comes this time or longer after the last
    rewrite; 0 for no rewrites by time (`metadata.log.max.snapshot.interval.ms`).
    """

    growth_bytes: int
    interval_ms: int


class MetadataLog:
    """The metadata log of a data directory: the file of records from which the state of the cluster is restored after a restart.

    all_facts: a function that returns the records that describe the whole current state. now_ms: a function that returns the current time. deletion:
    deletes files of the data directory. limits: when the log is rewritten. `recovered_state`: the state that the previous process left behind.
    `process_number`: the number of this process among those that have used the data directory, from 1. `cuts`: a text for each removal of damaged
    bytes when the cluster was restored.
    """

    def __init__(
        self,
        directory: DataDirectory,
        budget: MemoryBudget,
        all_facts: Callable[[], Iterable[MetadataRecord]],
        now_ms: Callable[[], int],
        deletion: DelayedDeletion,
        limits: SnapshotLimits,
    ) -> None:
        self.directory = directory
        self.cuts: list[str] = []
        self._all_facts = all_facts
        self._now_ms = now_ms
        self._deletion = deletion
        self._limits = limits
        self._pool = FilePool(budget, deletion=deletion)
        try:
            self._facts = WriteAheadLog(directory.facts)
            self.recovered_state = MetadataState(self._facts.records)
        except (OSError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise ConfigError(
                f"data directory {directory.path}: its file 'facts' cannot be read: {error}; "
                "if you cannot restore the file, give an empty folder, for example --data-dir ./kafka-data"
            ) from None
        if self._facts.cut_bytes or not self._facts.records:
            self._refuse_to_forget()
        self.process_number = self.recovered_state.process_number + 1
        self._is_open = False
        self._rewrite_due = False
        self._written_anew_bytes = self._written_anew_ms = self._retry_ms = 0
        if self._facts.cut_bytes:
            self._cut(f"{self._facts.cut_bytes} bytes of the last record of the file 'facts', which was incomplete")

    def _refuse_to_forget(self) -> None:
        """Raise ConfigError if there are segment files of partitions that the metadata log does not contain.

        Otherwise `begin` would delete these files, although the metadata log may be incomplete.
        """
        for path in self._unknown_partitions():
            self._facts.close()
            raise ConfigError(
                f"data directory {self.directory.path}: its folder topics/{path.name} belongs to no topic in the file 'facts' "
                f"({self._facts.size_bytes} bytes), which may be incomplete; restore the file 'facts', or give an empty folder, for example "
                "--data-dir ./kafka-data"
            )

    def _unknown_partitions(self) -> list[Path]:
        known_paths = {
            self.directory.partition(topic.topic_id, state.index)
            for topic in self.recovered_state.topics.values()
            for state in topic.partitions
        }
        return [path for path in self.directory.partitions() if path not in known_paths]

    def _cut(self, removed_data: str) -> None:
        self.cuts.append(removed_data)
        logger.warning("data directory %s is repaired: removed %s", self.directory.path, removed_data)

    # ---- beginning and end ---------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Delete the files of partitions that do not exist any more, and start to persist changes. Call it after the cluster has been restored.

        As in Kafka, the delay of a folder that the previous process has renamed begins again. A folder that cannot be deleted is logged, and the next
        start tries again. Raises ConfigError if the metadata log cannot be written.
        """
        for path in self._unknown_partitions():
            delete_folder_or_log(path)
        for path in self.directory.deleted_partitions():
            self._deletion.delete_renamed_folder(path)
        try:
            self._write_anew()
        except StorageError as error:
            raise ConfigError(
                f"data directory {self.directory.path} cannot be used: {error}; free some space or give another folder, for example "
                "--data-dir ./kafka-data"
            ) from None
        self._is_open = True
        self.recovered_state = MetadataState(())

    def close(self) -> None:
        """Append a record of a proper stop, so that the next process need not verify checksums, and release the data directory's lock."""
        if self._is_open:
            self._is_open = False
            try:
                self._write_anew()
                self._facts.append(records.closed())
            except StorageError as error:
                logger.error(
                    "data directory %s cannot be closed: %s; the next start verifies the checksums of all records",
                    self.directory.path,
                    error,
                )
        self._facts.close()
        self.directory.close()

    # ---- facts ---------------------------------------------------------------------------------------------------------------

    def note(self, fact: MetadataRecord) -> None:
        """Append the record `fact`, which describes a change, to the log. Does nothing while the cluster is being restored.

        Raises StorageError if the record cannot be written; the caller must then not make the change.
        """
        if not self._is_open:
            return
        now_ms = self._now_ms()
        self._retry_ms = min(self._retry_ms, now_ms + RETRY_MS)  # the clock may have been set back
        if self.lacks:
            self._write_anew()
        elif self._rewrite_due and now_ms >= self._retry_ms:
            self._shorten(now_ms)
        self._facts.append(fact)
        limits = self._limits
        growth_bytes = self._facts.size_bytes - self._written_anew_bytes
        is_long = growth_bytes >= limits.growth_bytes and growth_bytes > self._written_anew_bytes
        self._written_anew_ms = min(self._written_anew_ms, now_ms)  # a reset of a test cluster sets its clock back
        if is_long or 0 < limits.interval_ms <= now_ms - self._written_anew_ms:
            # The change just persisted has not happened yet, so the log is rewritten with the next one.
            self._rewrite_due = True

    def note_or_refuse(self, fact: MetadataRecord) -> None:
        """Append the record `fact`, which describes a change that a client requested, to the log.

        Raises KafkaError KAFKA_STORAGE_ERROR (56) if the record cannot be written; the change must then be rejected.
        """
        try:
            self.note(fact)
        except StorageError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    def note_if_possible(self, fact: MetadataRecord) -> None:
        """Append the record `fact` of a change that cannot be rejected. If the write fails, `settle` rewrites the whole log later. Never raises."""
        try:
            self.note(fact)
        except StorageError as error:
            self._not_saved(error)

    def _not_saved(self, error: StorageError) -> None:
        self._pool.keeps_segments = True
        logger.error(
            "data directory %s: a change of metadata was not saved; the broker tries again later: %s",
            self.directory.path,
            error,
        )

    @property
    def lacks(self) -> bool:
        """Return whether the metadata log lacks a change, because the change could not be written.

        If so, no segment file may be deleted: the metadata log may still say that a partition has batches in the file.
        """
        return self._pool.keeps_segments

    def settle(self) -> None:
        """Rewrite the log if an earlier write failed, so that it lacks no change. Call it before batches are appended to partitions.

        Raises StorageError if the rewrite fails; the batches must then not be appended.
        """
        if self.lacks:
            self._write_anew()

    def refresh(self) -> None:
        """Rewrite the whole log, after many changes at once. Never raises: if the rewrite fails, `settle` tries it again later."""
        if not self._is_open:
            return
        try:
            self._write_anew()
        except StorageError as error:
            self._not_saved(error)

    def _shorten(self, now_ms: int) -> None:
        """Rewrite the log, because it has become long or old. Never raises: after a failure, it is tried again `RETRY_MS` later."""
        try:
            self._write_anew()
        except StorageError as error:
            self._retry_ms = now_ms + RETRY_MS
            logger.error(
                "data directory %s: its metadata log was not shortened, but has all changes; the broker tries again with a change after %d s: %s",
                self.directory.path,
                RETRY_MS // 1000,
                error,
            )

    def _write_anew(self) -> None:
        self._facts.replace(self._all_facts())
        self._written_anew_bytes, self._written_anew_ms, self._retry_ms = self._facts.size_bytes, self._now_ms(), 0
        self._rewrite_due = self._pool.keeps_segments = False

    # ---- partitions ----------------------------------------------------------------------------------------------------------

    @property
    def path(self) -> str:
        """The absolute path of the data directory."""
        return str(self.directory.path.absolute())

    def volume(self) -> tuple[int, int]:
        """Return (total bytes, usable bytes) of the file system of the data directory; (-1, -1) if it cannot be read (AD-49)."""
        try:
            usage = shutil.disk_usage(self.directory.path)
        except OSError:
            return -1, -1
        return usage.total, usage.free

    def folder(self, topic_id: bytes, index: int) -> SegmentFolder:
        return SegmentFolder(self.directory.partition(topic_id, index), self._pool)

    def state_writer(self, topic_id: bytes, index: int) -> PartitionRecorder:
        return PartitionRecorder(self, topic_id, index)

    def restore(self, topic_id: bytes, index: int, store: Store) -> LogState | None:
        """Restore a partition that the previous process persisted. Returns the state of its log; None if that process had no such partition.

        store: receives the bytes in the partition's segment files.
        """
        if self._is_open:
            return None
        try:
            recovered_log = recover(
                store,
                self.recovered_state.logs_of(topic_id, index),
                not self.recovered_state.was_closed,
                self._now_ms(),
            )
        except OSError as error:
            raise ConfigError(
                f"data directory {self.directory.path} cannot be read: {error}; give another folder, for example --data-dir ./kafka-data"
            ) from None
        if recovered_log.cut_bytes:
            name = next(
                (t.name for t in self.recovered_state.topics.values() if t.topic_id == topic_id), topic_id.hex()
            )
            self._cut(
                f"{recovered_log.cut_bytes} damaged bytes of {name}-{index}, which ends at offset {recovered_log.cut_at} now"
            )
        return recovered_log.state


class PartitionRecorder:
    """Writes the persistent state of one partition's log, such as its offsets, to the metadata log of the data directory.

    Implements the interface `LogStateWriter` of `kafkaproto.broker.log.replica_log`, with which a log persists its state.
    """

    __slots__ = ("_index", "_metadata_log", "_topic_id")

    def __init__(self, metadata_log: MetadataLog, topic_id: bytes, index: int) -> None:
        self._metadata_log = metadata_log
        self._topic_id = topic_id
        self._index = index

    def appending(self) -> None:
        self._metadata_log.settle()

    def leadership_started(self, state: LogState) -> None:
        self._metadata_log.note_if_possible(records.log(self._topic_id, self._index, state))

    def cleaned(self, state: LogState) -> None:
        self._metadata_log.note(records.log(self._topic_id, self._index, state))

    def started(self, at: int, log_start_offset: int, producers: dict[int, ProducerEntry]) -> None:
        start = LogStart(at, log_start_offset, producers)
        self._metadata_log.note(records.log_start(self._topic_id, self._index, start))
