"""A read_committed consumer: it gets the records of committed transactions and no others, in order and without gaps."""

from __future__ import annotations

from typing import Any

from kafkaproto.broker.log.replica_log import ReplicaLog
from kafkaproto.records.batch import records
from tests.simulation.client import TopicPartition
from tests.simulation.consumer import Consumer
from tests.simulation.truth import History
from tests.support.broker.read_committed import visible_batches

READ_COMMITTED = 1


class CommittedConsumer(Consumer):
    """Drops the records of the aborted transactions in a response, as Kafka's clients do, and compares what is left with the truth."""

    isolation = READ_COMMITTED

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._dropped: set[int] = set()
        """The base offsets of the batches of aborted transactions in the last response."""

    def end_of(self, log: ReplicaLog) -> int:
        return log.last_stable_offset

    def _read(self, at: TopicPartition, offset: int, data: Any) -> int:
        """Check each batch of a transaction: it is decided, and it is visible exactly if it is committed (TX-54)."""
        history = self.world.truth.histories[self.positions[at].topic_id, at[1]]
        logged, transactions = history.transactions, self.world.transactions
        self._dropped.clear()
        for entry in visible_batches(data):
            header, is_visible = entry.batch.header, entry.is_visible
            location = f"{self.name}: {history.name} at {header.base_offset}"
            assert header.next_offset <= data.last_stable_offset, f"{location}: above {data.last_stable_offset}"
            if header.is_control or not header.is_transactional:
                continue
            if not is_visible:
                self._dropped.add(header.base_offset)
            if logged.misses_marker:
                continue
            committed = logged.decisions.get(header.base_offset)
            assert committed is not None, f"{location}: the transaction is undecided"
            assert is_visible == committed, f"{location}: visible {is_visible}, but committed {committed}"
            for record in records(entry.batch.view):
                transaction = transactions.owner(record, is_offset=False)
                assert not is_visible or transaction.can_be_visible, f"{location}: {transaction.name} is visible"
        return super()._read(at, offset, data)

    def read_keys(self, history: History, base_offset: int, batch: memoryview) -> None:
        """Note and check the records of a batch of a compacted partition, unless its transaction is aborted."""
        if base_offset not in self._dropped:
            super().read_keys(history, base_offset, batch)
