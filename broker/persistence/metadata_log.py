"""What a cluster tells its data directory while it lives, and asks of it when it begins.

Whoever changes something that must survive calls `note` first, and changes nothing if that raises. What may fail without harm
(a fact that the next process can tell from the bytes, or an election that happened already) goes through `note_if_possible`: then all
facts are written anew as soon as one can be written, and nothing is appended before.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path

from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.log.errors import StorageError
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

logger = logging.getLogger("kafkaproto.persistence")
LEAST_GROWTH_BYTES = 4 << 20
"""The facts are written anew when they have grown by this much, and to more than twice their size."""


class MetadataLog:
    """all_facts: everything that holds now, as facts. now_ms: the time of the turn. `cuts` tells what recovery cut, in words."""

    def __init__(
        self,
        directory: DataDirectory,
        budget: MemoryBudget,
        all_facts: Callable[[], Iterable[MetadataRecord]],
        now_ms: Callable[[], int],
    ) -> None:
        self.directory = directory
        self.cuts: list[str] = []
        self._all_facts = all_facts
        self._now_ms = now_ms
        self._pool = FilePool(budget)
        try:
            self._facts = WriteAheadLog(directory.facts)
            self.left = MetadataState(self._facts.found)
        except (OSError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise ConfigError(
                f"data directory {directory.path}: its facts cannot be read: {error}; give an empty folder, for example "
                "--data-dir ./kafka-data"
            ) from None
        if self._facts.cut_bytes or not self._facts.found:
            self._refuse_to_forget()
        self.life = self.left.life + 1
        self._is_open = False
        self._rewrite_due = False
        self._written_anew_bytes = 0
        if self._facts.cut_bytes:
            self._cut(f"{self._facts.cut_bytes} bytes of the last fact, which was not whole")

    def _refuse_to_forget(self) -> None:
        """WriteAheadLog are missing: what they do not tell of was hardly deleted. Raises ConfigError."""
        for path in self._unknown_partitions():
            self._facts.close()
            raise ConfigError(
                f"data directory {self.directory.path}: its facts end at byte {self._facts.size_bytes} and tell nothing of "
                f"topics/{path.name}; bring back the file facts, or give an empty folder, for example --data-dir ./kafka-data"
            )

    def _unknown_partitions(self) -> list[Path]:
        known = {
            self.directory.partition(topic.topic_id, state.index)
            for topic in self.left.topics.values()
            for state in topic.partitions
        }
        return [path for path in self.directory.partitions() if path not in known]

    def _cut(self, what: str) -> None:
        self.cuts.append(what)
        logger.warning("data directory %s: cut %s", self.directory.path, what)

    # ---- beginning and end ---------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """The cluster is as it was: from now on it is remembered. Raises ConfigError when nothing can be written."""
        for path in self._unknown_partitions():
            self._folder(path).remove()
        try:
            self._write_anew()
        except StorageError as error:
            raise ConfigError(
                f"data directory {self.directory.path}: {error}; free some space or give another folder, for example "
                "--data-dir ./kafka-data"
            ) from None
        self._is_open = True
        self.left = MetadataState(())

    def close(self) -> None:
        """The process ends by itself: the next one need not check checksums."""
        if self._is_open:
            self._is_open = False
            try:
                self._write_anew()
                self._facts.append(records.closed())
            except StorageError as error:
                logger.error("data directory %s: %s; the next start checks everything", self.directory.path, error)
        self._facts.close()
        self.directory.close()

    # ---- facts ---------------------------------------------------------------------------------------------------------------

    def note(self, fact: MetadataRecord) -> None:
        """Remember this. Raises StorageError; then nothing must change."""
        if not self._is_open:
            return
        if self._rewrite_due:
            self._write_anew()
        self._facts.append(fact)
        grown = self._facts.size_bytes - self._written_anew_bytes
        if grown > max(LEAST_GROWTH_BYTES, self._written_anew_bytes):
            # What was just noted has not happened yet: the facts are written anew with the next one.
            self._rewrite_due = True

    def note_or_refuse(self, fact: MetadataRecord) -> None:
        """The same for what clients ask for. Raises KafkaError 56."""
        try:
            self.note(fact)
        except StorageError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    def note_if_possible(self, fact: MetadataRecord) -> None:
        """Never raises."""
        try:
            self.note(fact)
        except StorageError as error:
            self._rewrite_due = self._pool.keeps_segments = True
            logger.error("data directory %s: %s", self.directory.path, error)

    @property
    def lacks(self) -> bool:
        """Whether something has happened that could not be noted. Until it is, no segment's file goes: the facts still tell of it."""
        return self._pool.keeps_segments

    def settle(self) -> None:
        """Records are about to be appended: an election that could not be noted is, first. Raises StorageError; then nothing must change."""
        if self.lacks:
            self._write_anew()

    def refresh(self) -> None:
        """Much has changed at once: write down what holds now. Never raises."""
        self._rewrite_due = True
        self.note_if_possible(records.life(self.life))

    def _write_anew(self) -> None:
        self._facts.replace(self._all_facts())
        self._written_anew_bytes = self._facts.size_bytes
        self._rewrite_due = self._pool.keeps_segments = False

    # ---- partitions ----------------------------------------------------------------------------------------------------------

    def folder(self, topic_id: bytes, index: int) -> SegmentFolder:
        return self._folder(self.directory.partition(topic_id, index))

    def _folder(self, path: Path) -> SegmentFolder:
        return SegmentFolder(path, self._pool)

    def keeper(self, topic_id: bytes, index: int) -> PartitionRecorder:
        return PartitionRecorder(self, topic_id, index)

    def restore(self, topic_id: bytes, index: int, store: Store) -> LogState | None:
        """What the process before left of a partition; None for one that is new."""
        if self._is_open:
            return None
        try:
            found = recover(store, self.left.logs_of(topic_id, index), not self.left.was_closed, self._now_ms())
        except OSError as error:
            raise ConfigError(f"data directory {self.directory.path} cannot be read: {error}") from None
        if found.cut_bytes:
            name = next((t.name for t in self.left.topics.values() if t.topic_id == topic_id), topic_id.hex())
            self._cut(f"{found.cut_bytes} damaged bytes of {name}-{index}, which ends at offset {found.cut_at} now")
        return found.state


class PartitionRecorder:
    """Tells the facts of one partition (`kafkaproto.broker.log.replica_log.Keeper`)."""

    __slots__ = ("_index", "_metadata_log", "_topic_id")

    def __init__(self, metadata_log: MetadataLog, topic_id: bytes, index: int) -> None:
        self._metadata_log = metadata_log
        self._topic_id = topic_id
        self._index = index

    def appending(self) -> None:
        self._metadata_log.settle()

    def begun(self, state: LogState) -> None:
        self._metadata_log.note_if_possible(records.log(self._topic_id, self._index, state))

    def cleaned(self, state: LogState) -> None:
        self._metadata_log.note(records.log(self._topic_id, self._index, state))

    def started(self, at: int, log_start_offset: int, producers: dict[int, ProducerEntry]) -> None:
        start = LogStart(at, log_start_offset, producers)
        self._metadata_log.note(records.log_start(self._topic_id, self._index, start))
