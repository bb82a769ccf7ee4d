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

    Yields nothing while a partition of `__transaction_state` has no leader, or a coordinator still loads it: then its transactions are unknown.
    """
    nodes = [node for node in cluster.nodes if node.running]
    topics = cluster.controller.image.topics
    known = set()
    if TRANSACTION_TOPIC in topics:
        stores = [node.transactions.coordinator.store for node in nodes]
        if any(store.is_loading for store in stores) or any(
            p.leader == NO_LEADER for p in topics[TRANSACTION_TOPIC].partitions
        ):
            return
        known = {
            (transaction.data.producer_id, key)
            for store in stores
            for transaction in store
            for key in transaction.data.partitions
        }
    for node in nodes:
        for (topic, index), partition in node.replicas.partitions.items():
            if not partition.is_leader:
                continue
            for producer_id, producer in partition.log.producers.producers.items():
                if producer.first_open_offset != NONE and (producer_id, (topic, index)) not in known:
                    yield (
                        f"{topic}-{index} has a hanging transaction of producer {producer_id} epoch {producer.epoch}, which began at offset "
                        f"{producer.first_open_offset}: no coordinator has it, so no timeout ends it, and read_committed consumers "
                        "read nothing from this offset on; end it with kafka-transactions.sh abort (KIP-664)"
                    )
