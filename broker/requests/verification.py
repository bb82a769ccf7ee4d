"""Verification of transactions before the first batch of a producer is appended to a partition (KIP-890; TX-27, TX-28).

Corresponds to `ReplicaManager.maybeSendPartitionsToTransactionCoordinator` in Kafka. This module does not depend on wire messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafkaproto.broker.log.errors import InvalidBatch
from kafkaproto.broker.transaction.operations import PartitionKey, VerificationRequest, Verified

if TYPE_CHECKING:
    from kafkaproto.broker.node import Node

NO_SEQUENCE = -1


def verify(
    node: Node,
    producer: tuple[str, int, int],
    sequences: Mapping[PartitionKey, int],
    now_ms: int,
    done: Verified,
    *,
    adds: bool,
) -> None:
    """Check that partitions that this broker leads are part of a producer's transaction, or add the missing ones.

    producer: (transactional id, producer id, epoch). sequences: maps each partition to the first sequence number of its batch. adds: True
    if the producer uses transaction version 2, so that missing partitions are added; False to check only. done: called with an error code
    for each partition, at once or when the coordinator has responded. It is not called if the broker stops before the response.

    A partition in which the transaction is already open is not sent to the coordinator. If other partitions are sent, this partition is
    checked again after the response, because the transaction may have ended in the meantime (TX-30).
    """
    transactional_id, producer_id, epoch = producer
    errors: dict[PartitionKey, int] = {}
    unverified, in_transaction = [], {}
    is_on = adds or node.config["transaction.partition.verification.enable"]
    for key, sequence in sequences.items() if is_on else ():
        partition = node.replicas.find(*key)
        if partition is None or not partition.is_leader:
            continue
        states = partition.log.producers
        try:
            if node.is_release_4:  # before, only the append looks at the epoch (TX-27)
                states.check_epoch(producer_id, epoch)
            if states.needs_verification(producer_id, epoch if node.is_release_4 else None):
                states.begin_verification(producer_id, epoch, sequence, now_ms, adds_partitions=adds)
                unverified.append(key)
            else:
                in_transaction[key] = sequence
        except InvalidBatch as error:
            errors[key] = error.error_code

    def verified(results: dict[PartitionKey, int], at_ms: int) -> None:
        errors.update(results)
        done({key: errors.get(key, 0) for key in sequences}, at_ms)

    def responded(results: dict[PartitionKey, int], at_ms: int) -> None:
        if not node.running:
            return
        if in_transaction:
            verify(
                node,
                producer,
                in_transaction,
                at_ms,
                lambda others, later_ms: verified(results | others, later_ms),
                adds=adds,
            )
        else:
            verified(results, at_ms)

    if unverified:
        request = VerificationRequest(transactional_id, producer_id, epoch, unverified, adds)
        node.transactions.verifier.verify(request, now_ms, responded)
    else:
        verified({}, now_ms)
