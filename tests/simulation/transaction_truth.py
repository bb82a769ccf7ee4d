"""A model of transactions beside the brokers: what their producers know of them, and what the markers in the logs say.

It learns from the responses that producers get, and from committed batches. It never changes anything. Every check raises AssertionError.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.group.coordinator import GroupCoordinator
from kafkaproto.broker.group.placement import OFFSETS_TOPIC
from kafkaproto.broker.log.replica_log import ReplicaLog
from kafkaproto.broker.transaction.coordinator import TransactionCoordinator
from kafkaproto.records.batch import BatchHeader, Record
from kafkaproto.records.batch import records as records_of
from tests.support.broker.client_transactions import ClientTransaction, TransactionalId
from tests.support.broker.committed_offset import NOTHING

COMMIT_MARKER = 1
NEVER = 1 << 62


class TransactionTruth:
    """All transactional ids, and their transactions by the values of their records and by their offsets."""

    def __init__(self) -> None:
        self.ids: list[TransactionalId] = []
        self.by_value: dict[bytes, ClientTransaction] = {}
        self._last_number = 0

    def new_number(self) -> int:
        """Return a number that no record and no offset has."""
        self._last_number += 1
        return self._last_number

    def owner(self, record: Record, *, is_offset: bool) -> ClientTransaction:
        """Return the transaction that wrote a record. A tombstone has no value; its only header names it instead."""
        if not is_offset:
            return self.by_value[bytes(record.headers[0][1] if record.value is None else record.value)]
        number = int.from_bytes(
            bytes(record.value or b"")[2:10], "big"
        )  # the value begins with a version and the offset
        return next(
            transactional_id.offsets[number] for transactional_id in self.ids if number in transactional_id.offsets
        )

    def check(self, cluster: Cluster) -> None:
        """Check that no coordinator forgets an epoch that a producer has got, or commits offsets of a transaction that is not committed."""
        broker_id, _ = cluster.controller.image.leader_of(OFFSETS_TOPIC, 0)
        for transactional_id in self.ids:
            if broker_id >= 0 and cluster.nodes[broker_id].running:
                self._check_offset(transactional_id, cluster.nodes[broker_id].groups)
            if transactional_id.newest < (0, 0):
                continue
            for node in cluster.nodes:
                if node.running:
                    self._check_coordinator(transactional_id, node.transactions.coordinator)

    @staticmethod
    def _check_offset(known: TransactionalId, coordinator: GroupCoordinator) -> None:
        if coordinator.ownership.refusal(known.group_id) or known.place in coordinator.commits.unstable(known.group_id):
            return
        group = coordinator.groups.get_any(known.group_id)
        committed = None if group is None else group.offsets.get(known.place)
        offset, allowed = NOTHING if committed is None else committed.offset, known.stable_offsets()
        assert offset in allowed, f"{known.group_id}: {known.place} is at {offset}, not at one of {sorted(allowed)}"

    @staticmethod
    def _check_coordinator(known: TransactionalId, coordinator: TransactionCoordinator) -> None:
        try:
            transaction = coordinator.store.get(known.name)
        except KafkaError:
            return  # another broker, or none at the moment
        assert transaction is not None, f"{known.name} is gone from its coordinator"
        has = transaction.data.producer_id, transaction.data.epoch
        assert has >= known.newest, f"{known.name}: {known.newest} was assigned, the coordinator has {has}"


class EndedTransaction(NamedTuple):
    """A transaction that has ended: the offset and timestamp (ms) of its marker, and the base offsets of its batches."""

    marker_offset: int
    marker_timestamp: int
    base_offsets: frozenset[int]

    @property
    def first_offset(self) -> int:
        return min(self.base_offsets, default=NEVER)

    def lacks_marker(self, log: ReplicaLog) -> bool:
        """Return whether a log has a batch of the transaction but not its marker."""
        has_batch = False
        for position, header in log.batches(log.log_start_offset):
            if header.base_offset == self.marker_offset:
                return has_batch and next(records_of(log.store.read(position, header.size)), None) is None
            if header.base_offset > self.marker_offset:
                break
            has_batch = has_batch or header.base_offset in self.base_offsets
        return has_batch


class LoggedTransactions:
    """The transactions in the committed batches of one partition. name: of the partition."""

    def __init__(self, name: str, truth: TransactionTruth) -> None:
        self.name = name
        self._truth = truth
        self._is_offsets = name.startswith(OFFSETS_TOPIC)
        self._epochs: dict[int, int] = {}
        self._open: dict[int, dict[int, set[ClientTransaction]]] = {}
        """Maps producer ids to the base offsets of the batches of their open transactions."""
        self.decisions: dict[int, bool] = {}
        """Maps the base offset of a batch to whether it is committed."""
        self._ended: list[EndedTransaction] = []
        """The transactions that have ended, in the order of their markers."""
        self._ends: dict[int, int] = {}
        """Maps brokers to the log end offset of their replica at the last check."""
        self.misses_marker = False
        """Whether a replica has missed a marker. From then on nothing is known of what the replicas hold of transactions."""

    def learn(self, header: BatchHeader, records: Iterator[Record]) -> dict[int, bool]:
        """Learn a committed batch of a producer. Returns the base offsets of the batches whose transaction it ends, and whether it commits it."""
        producer_id = header.producer_id
        epoch = self._epochs.get(producer_id, -1)
        assert header.producer_epoch >= epoch, f"{self.name}: the epoch of producer {producer_id} falls: {header}"
        self._epochs[producer_id] = header.producer_epoch
        if not header.is_transactional:
            return {}
        if not header.is_control:
            owners = {self._truth.owner(record, is_offset=self._is_offsets) for record in records}
            self._open.setdefault(producer_id, {})[header.base_offset] = owners
            return {}
        owners_by_offset = self._open.pop(producer_id, {})
        marker = next(records, None)
        if marker is None:  # compaction removed it before this object learned it: no record of the transaction is left
            self.misses_marker = True
            return {}
        committed = marker.key[2:4] == COMMIT_MARKER.to_bytes(2, "big")  # type: ignore[index]
        self._ended.append(EndedTransaction(header.base_offset, header.max_timestamp, frozenset(owners_by_offset)))
        for base_offset, owners in owners_by_offset.items():
            self.decisions[base_offset] = committed
            for owner in owners:
                owner.decide(self.name, committed)
        return dict.fromkeys(owners_by_offset, committed)

    @property
    def has_open(self) -> bool:
        """Return whether a transaction is open."""
        return bool(self._open)

    def find_missed_marker(self, broker_id: int, log: ReplicaLog, delete_retention_ms: int, now_ms: int) -> None:
        """Set `misses_marker` if a replica copied its leader's log after compaction had removed the marker of a transaction whose records it has.

        As in Kafka, this happens to a follower that lags by more than delete.retention.ms. The transaction then stays open on the follower, or the
        next marker of the producer ends it, maybe with the opposite result. The replica has not compacted this part of its log itself
        (see `check_markers`), or it has also copied this part since the last check.
        """
        copied_from = min(log.first_dirty_offset, self._ends.get(broker_id, 0))
        self._ends[broker_id] = log.log_end_offset
        self.misses_marker = self.misses_marker or any(
            copied_from <= transaction.marker_offset < log.log_end_offset
            and now_ms >= transaction.marker_timestamp + delete_retention_ms
            and transaction.lacks_marker(log)
            for transaction in self._ended
        )

    def check_markers(self, log: ReplicaLog) -> None:
        """Check that compaction of a replica has removed no marker before the batches of its transaction (KIP-534)."""
        for transaction in self._ended:
            assert transaction.marker_offset >= log.first_dirty_offset or not transaction.lacks_marker(log), (
                f"{self.name}: the marker at {transaction.marker_offset} is gone, "
                "but not the batches of its transaction"
            )

    def check(self, log: ReplicaLog, *, is_leader: bool) -> None:
        """Check the last stable offset of a replica (TX-53).

        Its high watermark may be lower than that of an earlier leader. Then it may know or not that a marker at or above it was replicated.
        A replica may not know a transaction whose records were deleted, if it starts at the new log start.
        """
        if self.misses_marker:
            return
        start = log.log_start_offset
        if not self._open and (not self._ended or self._ended[-1].marker_offset < log.high_watermark):
            stable = min(log.last_stable_offset, log.log_end_offset)
            bound = min(log.high_watermark, log.log_end_offset)
            assert not is_leader or stable == bound, (
                f"{self.name}: {stable} is stable, but nothing is open below {bound}"
            )
            return
        open_offsets = [offset for batches in self._open.values() for offset in batches]
        unstable = min(open_offsets, default=NEVER)
        for transaction in reversed(self._ended):
            if transaction.marker_offset < log.high_watermark:
                break
            unstable = min(unstable, transaction.first_offset)
        first_open = min((offset for offset in open_offsets if offset >= start), default=NEVER)
        lowest, highest = (max(min(first, log.high_watermark), start) for first in (unstable, first_open))
        stable = min(log.last_stable_offset, log.log_end_offset)
        assert stable <= highest, (
            f"{self.name}: the last stable offset {stable} passes the open transaction at {highest}"
        )
        assert not is_leader or stable >= lowest, f"{self.name}: the last stable offset is {stable}, not {lowest}"
