"""Finds hanging transactions: those that are open in a partition's log, and that no transaction coordinator knows (TX-76, KIP-664).

No timeout ends such a transaction, so consumers with read_committed wait at its first record. Corresponds to `kafka-transactions.sh find-hanging`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kafkaproto.broker.log.producer_state import NONE
from kafkaproto.broker.metadata.image import NO_LEADER, TRANSACTION_TOPIC

if TYPE_CHECKING:
    from kafkaproto.broker.cluster import Cluster


def hanging_transactions(cluster: Cluster) -> Iterator[str]:
    """Yield a line of text for each hanging transaction of a partition that has a leader.

    While running brokers have not loaded every partition of `__transaction_state`, it is unknown which transactions hang. In this case, each open
    transaction that is in none of the loaded partitions gets a line, which says that the coordinator of the transaction is unknown.
    """
    nodes = [node for node in cluster.nodes if node.running]
    known = {
        (transaction.data.producer_id, key)
        for node in nodes
        for transaction in node.transactions.coordinator.store
        for key in transaction.data.partitions
    }
    is_complete = _is_loaded(cluster)
    for node in nodes:
        for (topic, index), partition in node.replicas.partitions.items():
            if not partition.is_leader:
                continue
            for producer_id, producer in partition.log.producers.producers.items():
                if producer.first_open_offset == NONE or (producer_id, (topic, index)) in known:
                    continue
                facts = f"transaction of producer {producer_id} epoch {producer.epoch}, which began at offset {producer.first_open_offset}"
                if is_complete:
                    yield (
                        f"{topic}-{index} has a hanging {facts}: no coordinator has it, so no timeout ends it, and read_committed consumers "
                        "read nothing from this offset on; end it with kafka-transactions.sh abort (KIP-664)"
                    )
                else:
                    yield (
                        f"{topic}-{index} has an open {facts}; its coordinator is unknown, because a partition of {TRANSACTION_TOPIC} "
                        "has no running leader or is still being loaded"
                    )


def _is_loaded(cluster: Cluster) -> bool:
    """Return whether running brokers have loaded all transactional ids."""
    topic = cluster.controller.image.topics.get(TRANSACTION_TOPIC)
    if topic is None:
        return True
    leaders = {partition.leader for partition in topic.partitions}
    return NO_LEADER not in leaders and all(
        cluster.nodes[leader].running and not cluster.nodes[leader].transactions.coordinator.store.is_loading
        for leader in leaders
    )
