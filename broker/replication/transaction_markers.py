"""Markers that end transactions: appended to the partitions that this broker leads (TX-47 to TX-50), and sent to the leaders of other partitions.

Corresponds to `KafkaApis.handleWriteTxnMarkersRequest`. This module does not depend on wire messages or on the coordinator's decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.log.errors import InvalidBatch, StorageError
from kafkaproto.broker.log.validation import TopicLimits, Valid
from kafkaproto.broker.replication.append_wait import await_append
from kafkaproto.broker.replication.partition import Partition
from kafkaproto.broker.replication.replica_manager import ReplicaManager
from kafkaproto.broker.runtime.timers import Timers
from kafkaproto.broker.transaction.operations import PartitionKey, TransactionMarker
from kafkaproto.broker.transaction.store import Done
from kafkaproto.error_codes import ErrorCode
from kafkaproto.records.batch import read_header
from kafkaproto.records.control import build_end_txn_marker

STRICT_VERSION = 2
"""The transaction version from which on a marker must have a newer epoch than the transaction that it ends."""
Ended = Callable[[PartitionKey, TransactionMarker, int], None]
"""A function that is called with (partition, marker, current time in ms) when a transaction marker has been replicated."""


class TransactionMarkers:
    """Writes transaction markers to the partitions that one broker leads.

    timeout_ms: how long a marker may wait for replicas. ended: a function that is called for each marker that is replicated.
    """

    def __init__(self, replicas: ReplicaManager, timers: Timers, timeout_ms: int, ended: Ended) -> None:
        self._replicas = replicas
        self._timers = timers
        self._timeout_ms = timeout_ms
        self._ended = ended

    def write(self, marker: TransactionMarker, key: PartitionKey, now_ms: int, done: Done) -> None:
        """Append a transaction marker to a partition that this broker leads (TX-48).

        `done` is called with an error code and the current time (ms): when the marker is replicated, or when the write fails.
        """
        partition = self._replicas.find(*key)
        if partition is None or partition.gone:
            done(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, now_ms)
            return
        if not partition.is_leader:
            done(ErrorCode.NOT_LEADER_OR_FOLLOWER, now_ms)
            return

        def replicated(error_code: int, at_ms: int) -> None:
            if not error_code:
                self._ended(key, marker, at_ms)
            done(error_code, at_ms)

        self._append(partition, marker, now_ms, replicated)

    def _append(self, partition: Partition, marker: TransactionMarker, now_ms: int, done: Done) -> None:
        batch = build_end_txn_marker(
            marker.committed,
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            coordinator_epoch=marker.coordinator_epoch,
            timestamp=now_ms,
        )
        try:
            if marker.client_version >= STRICT_VERSION:
                partition.log.producers.check_end_of_transaction(marker.producer_id, marker.producer_epoch)
            append_result = self._replicas.append(
                partition, memoryview(bytearray(batch)), now_ms, acks_all=True, validate=_unchanged
            )
        except (KafkaError, InvalidBatch) as error:
            done(error.error_code, now_ms)
        except StorageError:
            done(ErrorCode.KAFKA_STORAGE_ERROR, now_ms)
        else:
            await_append(append_result.awaited, self._timers, now_ms, self._timeout_ms, done)


def _unchanged(batch: memoryview, _limits: TopicLimits, _now_ms: int) -> Valid:
    """Accept a marker without any check, because a topic's limits do not apply to markers. batch: the encoded marker.

    `ReplicaManager.append` gets this function instead of the one that validates produced batches.
    """
    return Valid(batch, read_header(batch))


class Topic(Protocol):
    """Interface of a topic in the metadata: its partitions, by index."""

    @property
    def partitions(self) -> tuple[PartitionState, ...]: ...


class PartitionState(Protocol):
    """Interface of a partition in the metadata: the id of its leader, -1 for none."""

    @property
    def leader(self) -> int: ...


class MarkerSender:
    """Passes transaction markers to the brokers that lead the partitions, which write them.

    topics: a function that returns the topics of the cluster by name. markers_of: a function that returns the `TransactionMarkers` of a broker, None
    while it is stopped.
    """

    def __init__(
        self,
        topics: Callable[[], Mapping[str, Topic]],
        markers_of: Callable[[int], TransactionMarkers | None],
    ) -> None:
        self._topics = topics
        self._markers_of = markers_of

    def write(self, marker: TransactionMarker, key: PartitionKey, now_ms: int, done: Done) -> None:
        """Append a transaction marker to a partition, on the broker that leads the partition.

        `done` is called with an error code and the current time (ms): when the marker is replicated, or when the write fails. For a deleted topic,
        nothing is written, and the error code is 0 (TX-49).
        """
        topic, index = key
        topic_state = self._topics().get(topic)
        if topic_state is None or index >= len(topic_state.partitions):
            done(ErrorCode.NONE, now_ms)
            return
        markers = self._markers_of(topic_state.partitions[index].leader)
        if markers is None:
            done(ErrorCode.NOT_LEADER_OR_FOLLOWER, now_ms)
        else:
            markers.write(marker, key, now_ms, done)
