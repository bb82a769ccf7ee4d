"""Views of transactions for tests, and the search for the coordinator of a transactional id."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.metadata.image import TRANSACTION_TOPIC
from kafkaproto.broker.testing.arguments import check_text, unknown
from kafkaproto.broker.testing.group_views import PartitionKey
from kafkaproto.broker.testing.leaders import check_loaded, missing_coordinator
from kafkaproto.broker.testing.tracebacks import is_hidden
from kafkaproto.broker.transaction.transaction import Transaction, TransactionState
from kafkaproto.error_codes import ErrorCode

if TYPE_CHECKING:
    from kafkaproto.broker.transaction.coordinator import TransactionCoordinator

__tracebackhide__ = is_hidden


class TransactionSeen(NamedTuple):
    """The state of a transactional id, as its transaction coordinator stores it."""

    transactional_id: str
    """The `transactional.id` of the producer."""
    state: str
    """Kafka's name of the state, such as "Ongoing" or "CompleteCommit"."""
    producer_id: int
    """The id that the coordinator gave to the producer."""
    epoch: int
    """The current epoch of the producer. A producer with an older epoch is fenced."""
    partitions: tuple[PartitionKey, ...]
    """The partitions of the open transaction, including those of `__consumer_offsets`; empty when the transaction is complete."""
    timeout_ms: int
    """The `transaction.timeout.ms` of the producer."""
    started_ms: int
    """When the last transaction started, in ms of the cluster's clock; -1 if none has started. From 4.0 on, InitProducerId sets it to -1, too."""
    coordinator: int
    """The id of the broker that coordinates the transactional id."""


class ProducerSeen(NamedTuple):
    """What the log of one partition stores about an idempotent or transactional producer."""

    producer_id: int
    """The id that a broker gave to the producer."""
    epoch: int
    """The epoch of the producer's last batch or marker in the partition."""
    last_sequence: int
    """The sequence number of the producer's last record in this epoch; -1 for none."""
    first_open_offset: int
    """The offset at which the producer's open transaction begins in the partition; -1 if no transaction is open."""


def coordinators(cluster: Cluster) -> list[tuple[int, TransactionCoordinator]]:
    if TRANSACTION_TOPIC not in cluster.controller.image.topics:
        return []
    return [(node.broker_id, node.transactions.coordinator) for node in cluster.nodes if node.running]


def all_transactions(cluster: Cluster) -> dict[str, TransactionSeen]:
    return {
        transaction.transactional_id: transaction_seen(transaction, coordinator, broker_id)
        for broker_id, coordinator in coordinators(cluster)
        for transaction in coordinator.store
    }


def loading_broker(cluster: Cluster, transactional_id: str) -> int | None:
    """Return the broker that loads the partition of the transaction topic to which a transactional id belongs, None if no broker does."""
    for broker_id, coordinator in coordinators(cluster):
        try:
            coordinator.store.get(transactional_id)
        except KafkaError as error:
            if error.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                return broker_id
    return None


def missing_transaction_coordinator(cluster: Cluster, transactional_id: str) -> str | None:
    """Return why no running broker coordinates a transactional id; None if one does, or if the transaction topic does not exist."""
    counts = {coordinator.store.partition_count for _, coordinator in coordinators(cluster)}
    return missing_coordinator(cluster, TRANSACTION_TOPIC, transactional_id, counts)


def find_transaction(cluster: Cluster, transactional_id: str) -> tuple[Transaction, TransactionCoordinator, int]:
    """Return (the state of a transactional id, its coordinator, the coordinator's broker id).

    Raises ValueError for an unknown id, KafkaError COORDINATOR_LOAD_IN_PROGRESS (14) if a broker still loads the id, and KafkaError
    COORDINATOR_NOT_AVAILABLE (15) if no running broker coordinates it.
    """
    check_text("transactional_id", transactional_id, "orders-tx")
    for broker_id, coordinator in coordinators(cluster):
        for transaction in coordinator.store:
            if transaction.transactional_id == transactional_id:
                return transaction, coordinator, broker_id
    check_loaded(
        f"transactional id {transactional_id!r}",
        TRANSACTION_TOPIC,
        loading_broker(cluster, transactional_id),
        missing_transaction_coordinator(cluster, transactional_id),
        f"wait_for_transaction({transactional_id!r}, ...)",
    )
    raise unknown(
        "transactional_id", transactional_id, "an existing transactional id", sorted(all_transactions(cluster))
    )


def find_open_transaction(cluster: Cluster, transactional_id: str) -> tuple[Transaction, TransactionCoordinator, int]:
    transaction, coordinator, broker_id = find_transaction(cluster, transactional_id)
    if transaction.data.state is not TransactionState.ONGOING:
        ongoing = sorted(
            name for name, view in all_transactions(cluster).items() if view.state == TransactionState.ONGOING.label
        )
        raise unknown("transactional_id", transactional_id, "a transactional id with an open transaction", ongoing)
    return transaction, coordinator, broker_id


def transaction_seen(transaction: Transaction, coordinator: TransactionCoordinator, broker_id: int) -> TransactionSeen:
    data = transaction.data
    return TransactionSeen(
        transaction.transactional_id,
        data.state.label,
        data.producer_id,
        data.epoch,
        tuple(data.partitions),
        data.timeout_ms,
        data.start_ms,
        broker_id,
    )
