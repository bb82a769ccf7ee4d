"""Verification of transactions before the first batch of a producer is appended to a partition (KIP-890; TX-27, TX-28).

Corresponds to `ReplicaManager.maybeSendPartitionsToTransactionCoordinator` in Kafka. This module does not depend on wire messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kafkaproto.broker.log.errors import InvalidBatch
from kafkaproto.broker.transaction.operations import PartitionKey, VerificationRequest
from kafkaproto.error_codes import ErrorCode

if TYPE_CHECKING:
    from kafkaproto.broker.node import Node

NO_SEQUENCE = -1


class Verification(NamedTuple):
    """The result of verifying which partitions belong to a producer's transaction (KIP-890).

    errors: an error code for each partition, 0 for none. ended: partitions whose batches the leader must reject (TX-30). They needed no verification,
    because the transaction was already open in them. But the transaction ended in them while the coordinator verified the other partitions.
    """

    errors: Mapping[PartitionKey, int]
    ended: Sequence[PartitionKey]


def verify(
    node: Node,
    producer: tuple[str, int, int],
    sequences: Mapping[PartitionKey, int],
    now_ms: int,
    done: Callable[[Verification, int], None],
    *,
    adds: bool,
    retries: bool = False,
) -> None:
    """Check that a producer's transaction contains the given partitions, or add the missing partitions to it.

    A partition that this broker does not lead gets error NOT_LEADER_OR_FOLLOWER (6). producer: (transactional id, producer id, epoch). sequences:
    maps each partition, which must exist, to the first sequence number of its batch. adds: True if the producer uses transaction version 2, so that
    missing partitions are added; False to check only. retries: whether to repeat the request to the coordinator while it is completing the producer's
    previous transaction (TX-31). done: a function that is called with the result and the current time (ms), at once or when the
    coordinator has responded. `done` is not called if the broker stops before the response.
    """
    transactional_id, producer_id, epoch = producer
    errors: dict[PartitionKey, int] = {}
    unverified: list[PartitionKey] = []
    open_before: list[PartitionKey] = []
    is_on = adds or node.config["transaction.partition.verification.enable"]
    required_epoch = epoch if node.is_release_4 else None
    for key, sequence in sequences.items() if is_on else ():
        partition = node.replicas.find(*key)
        if partition is None or not partition.is_leader:
            errors[key] = ErrorCode.NOT_LEADER_OR_FOLLOWER
            continue
        states = partition.log.producers
        try:
            if node.is_release_4:  # before, only the append looks at the epoch (TX-27)
                states.check_epoch(producer_id, epoch)
            if states.needs_verification(producer_id, required_epoch):
                states.begin_verification(producer_id, epoch, sequence, now_ms, adds_partitions=adds)
                unverified.append(key)
            else:
                open_before.append(key)
        except InvalidBatch as error:
            errors[key] = error.error_code

    def verified(results: dict[PartitionKey, int], at_ms: int) -> None:
        if not node.running:
            return
        errors.update(results)
        ended = []
        for key in open_before:
            partition = node.replicas.find(*key)
            if partition is not None and partition.log.producers.needs_verification(producer_id, required_epoch):
                ended.append(key)
        done(Verification({key: errors.get(key, 0) for key in sequences}, ended), at_ms)

    if unverified:
        request = VerificationRequest(transactional_id, producer_id, epoch, unverified, adds, retries)
        node.transactions.verifier.verify(request, now_ms, verified)
    else:
        verified({}, now_ms)
