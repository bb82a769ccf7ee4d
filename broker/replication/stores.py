"""The stores of a cluster: the bytes of each partition, shared by its replicas, in memory or on a disk.

This module does not depend on the choice of leaders, settings of topics or wire messages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kafkaproto.broker.log.named_files import SegmentFolder
from kafkaproto.broker.log.replica_log import LogState, LogStateWriter, Origin, ReplicaLog
from kafkaproto.broker.log.rolling import IndexLimits
from kafkaproto.broker.log.store import MemoryBudget, Store
from kafkaproto.broker.runtime.events import Events


class Storage(Protocol):
    """Interface of a data directory, which keeps the segment files and the log states of all partitions.

    `path` is its absolute path. `folder` returns the folder of a partition's segment files. `state_writer` returns the object that persists the state
    of a partition's log. After a restart of the process, `restore` returns the persisted state of a log and brings back its segments.
    """

    @property
    def path(self) -> str: ...

    def folder(self, topic_id: bytes, index: int) -> SegmentFolder: ...

    def state_writer(self, topic_id: bytes, index: int) -> LogStateWriter: ...

    def restore(self, topic_id: bytes, index: int, store: Store) -> LogState | None:
        """Add a partition's segments on the disk to `store`, the partition's new store. Returns the persisted log state, None if there is none."""

    def volume(self) -> tuple[int, int]:
        """Return (total bytes, usable bytes) of the file system of the data directory; (-1, -1) if it cannot be read."""


class Stores:
    """The bytes of all partitions of a cluster: one store per partition, shared by its replicas.

    - budget: limits the bytes in memory.
    - draw: a function that returns a random number from 0 to 1, for segment.jitter.ms; the cluster's seed determines the numbers.
    - events: where the replicas' logs report changes of their offsets (`offsets_moved`) and truncations (`log_truncated`).
    - storage: the data directory; None if there is none, so that records do not survive the process.
    """

    def __init__(
        self, budget: MemoryBudget, draw: Callable[[], float], events: Events, storage: Storage | None = None
    ) -> None:
        self.budget = budget
        self._events = events
        self._draw = draw
        self._storage = storage
        self._stores: dict[tuple[bytes, int], Store] = {}
        self._left: dict[tuple[bytes, int], LogState] = {}

    def new_log(self, topic_id: bytes, origin: Origin, segment_bytes: int, index_limits: IndexLimits) -> ReplicaLog:
        """Return the log of a new replica, with the state that an earlier process persisted for the partition, if there is one.

        origin: the replica that the log belongs to. segment_bytes: the size in bytes at which a segment is full. index_limits:
        the limits of the indexes of a segment.
        """
        index = origin.partition
        state_writer = None if self._storage is None else self._storage.state_writer(topic_id, index)
        store = self._of(topic_id, index, segment_bytes, index_limits, origin.turn.now_ms)
        log = ReplicaLog(store, state_writer, self._events, origin)
        log_state = self._left.get((topic_id, index))
        if log_state is not None:
            log.restore(log_state)
        return log

    def _of(self, topic_id: bytes, index: int, segment_bytes: int, index_limits: IndexLimits, now_ms: int) -> Store:
        key = (topic_id, index)
        store = self._stores.get(key)
        if store is None:
            folder = None if self._storage is None else self._storage.folder(topic_id, index)
            store = self._stores[key] = Store(self.budget, segment_bytes, folder)
            store.roll_conditions.draw = self._draw
            store.roll_conditions.index_limits = index_limits
            store.roll_conditions.start_segment()
            store.flush_state.flushed_ms = now_ms
            log_state = None if self._storage is None else self._storage.restore(topic_id, index, store)
            if log_state is not None:
                self._left[key] = log_state
        return store

    @property
    def path(self) -> str | None:
        """The absolute path of the data directory; None if the records do not survive the process."""
        return None if self._storage is None else self._storage.path

    def volume(self) -> tuple[int, int]:
        """Return (total bytes, usable bytes) of the storage for records (AD-49).

        The storage is the file system of the data directory or, without a data directory, the memory for records. Both numbers are -1 if the file
        system cannot be read.
        """
        if self._storage is not None:
            return self._storage.volume()
        return self.budget.limit_bytes, max(0, self.budget.limit_bytes - self.budget.used_bytes)

    def began(self) -> None:
        """Drop the restored log states from memory, because the cluster has started and every replica has its log.

        Replicas that are created later start with an empty log.
        """
        self._left.clear()

    def forget(self, topic_id: bytes, index: int) -> None:
        """Delete the records of a partition, including those on the disk: its folder is deleted after `log.segment.delete.delay.ms`."""
        store = self._stores.pop((topic_id, index), None)
        if store is not None:
            store.close()

    def close(self) -> None:
        """Release the memory and file descriptors of all stores. The segment files of a data directory stay on the disk for the next process."""
        for store in self._stores.values():
            store.leave()
        self._stores.clear()
