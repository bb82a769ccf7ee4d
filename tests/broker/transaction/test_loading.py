"""Loading of transactional ids whose records are damaged or have a newer format (TX-4), and of groups and transactions whose offsets are committed
(TX-46).
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kafkaproto.broker.replication.coordinator_log import LoggedRecord
from kafkaproto.broker.runtime.timers import Timers
from kafkaproto.broker.transaction.records import Entry, entry
from kafkaproto.broker.transaction.store import Done, TransactionStore
from kafkaproto.broker.transaction.transaction import Transaction, TransactionData, TransactionState
from kafkaproto.conformance.groups import OFFSETS_TOPIC, Group
from kafkaproto.conformance.scene import Topic
from kafkaproto.conformance.transactions import Producer
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.support.broker.transaction_bench import TRANSACTIONS, TransactionBench
from tests.support.conformance.virtual import BROKERS
from tests.support.scene import elect

UNAVAILABLE, LOADING = ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
LOAD_MS = 500
IN_JAVA = {"group.coordinator.rebalance.protocols": "classic,consumer"}
"""The settings with which Kafka 3.9 has the group coordinator in Java."""
GOOD = entry("good", TransactionData(producer_id=7, timeout_ms=60_000, update_ms=1_000), 0)
DAMAGED = {
    "cut value": (GOOD[0], (GOOD[1] or b"")[:-3]),
    "newer version of the value": (GOOD[0], b"\x00\x63"),
    "newer kind of key": (b"\x00\x63good", GOOD[1]),
    "state that is never stored": entry("bad", TransactionData(8, 60_000, 1_000, TransactionState.DEAD), 0),
}


def commit_request(producer: Producer, group: Group, topic: Topic) -> TxnOffsetCommitRequest:
    """Return a request that commits offset 1 of partition 0."""
    offsets = [TxnOffsetCommitRequestTopic(topic.name, [TxnOffsetCommitRequestPartition(0, 1)])]
    return TxnOffsetCommitRequest(producer.id, group.id, producer.producer_id, producer.epoch, topics=offsets)


def commit_errors(bench: TransactionBench, request: TxnOffsetCommitRequest, versions: int, broker_id: int) -> list[int]:
    """Send a request in all versions below `versions` to a broker. Returns the error of its partition for each version."""
    responses = [bench.ask_once(request, version, broker_id) for version in range(versions)]
    return [response.topics[0].partitions[0].error_code for response in responses]


class _Log:
    """A partition of the transaction topic with some records."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries

    def append(self, index: int, entries: Sequence[Entry], now_ms: int, done: Done) -> None:
        raise AssertionError("loading must not write")

    def read(self, index: int) -> list[LoggedRecord]:
        return [LoggedRecord(offset, *record) for offset, record in enumerate(self._entries)]


@pytest.mark.parametrize("damaged", DAMAGED.values(), ids=DAMAGED)
def test_damaged_transaction_record_is_logged_and_other_transactions_are_loaded(
    damaged: Entry, caplog: pytest.LogCaptureFixture
) -> None:
    loaded: list[Transaction] = []
    store = TransactionStore(
        _Log([damaged, GOOD]),
        Timers(),
        lambda: 0,
        lambda: 0,
        loaded=lambda transactions, now_ms: loaded.extend(transactions),
        unloaded=lambda transactions: None,
        changed=lambda transaction, before, now_ms: None,
    )
    store.change({0: 5}, 1, 0)
    assert [(t.transactional_id, t.data.producer_id) for t in loaded] == [("good", 7)]
    [message] = [record.getMessage() for record in caplog.records]
    assert message.startswith("__transaction_state-0: the record at offset 0 is skipped: ")


@pytest.mark.rule("TX-46", "TX-68")
@pytest.mark.parametrize(("release", "versions"), [("3.9", 5), ("4.2", 6)])
def test_txn_offset_commit_error_is_retriable_while_the_txn_coordinator_loads(release: str, versions: int) -> None:
    bench = TransactionBench({"kafkaproto.transaction.load.ms": str(LOAD_MS)}, newer=release == "4.2")
    topic = bench.topic()
    producer = bench.begin(topic)
    group = Group(bench)
    while group.coordinator() == producer.coordinator():
        group = Group(bench)
    assert producer.add_offsets(group) == 0
    request = commit_request(producer, group, topic)
    state = bench.state_partition(producer)
    elect(bench.cluster, next(replica for replica in state.isr if replica != state.leader), TRANSACTIONS, state.index)
    assert commit_errors(bench, request, versions, group.coordinator()) == [UNAVAILABLE] * 2 + [LOADING] * (
        versions - 2
    )
    bench.pass_ms(LOAD_MS)
    assert commit_errors(bench, request, versions, group.coordinator()) == [0] * versions
    bench.stop()


@pytest.mark.rule("GC-9", "TX-46")
@pytest.mark.parametrize(("release", "settings", "versions"), [("3.9", {}, 5), ("3.9", IN_JAVA, 5), ("4.2", {}, 6)])
def test_txn_offset_commit_error_is_retriable_while_the_group_coordinator_loads(
    release: str, settings: dict[str, str], versions: int
) -> None:
    bench = TransactionBench({"kafkaproto.group.load.ms": str(LOAD_MS)} | settings, newer=release == "4.2")
    topic, group = bench.topic(), Group(bench)
    producer = bench.begin(topic)
    assert producer.add_offsets(group) == 0
    coordinator = (group.coordinator() + 1) % BROKERS
    elect(bench.cluster, coordinator, OFFSETS_TOPIC, group.index)
    request = commit_request(producer, group, topic)
    assert commit_errors(bench, request, versions, coordinator) == [UNAVAILABLE] * 2 + [LOADING] * (versions - 2)
    bench.pass_ms(LOAD_MS)
    assert bench.ask_once(request, 3, coordinator).topics[0].partitions[0].error_code == 0
    bench.stop()
