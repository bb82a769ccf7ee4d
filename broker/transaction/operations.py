"""The requests and results of the transaction coordinator.

They have a module of their own, so that other modules can import them without importing the coordinator.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple

PartitionKey = tuple[str, int]
"""Identifies a partition: (topic, partition)."""


class ProducerResult(NamedTuple):
    """The result of InitProducerId and EndTxn: the id and epoch to continue with; both are -1 after an error."""

    error_code: int
    producer_id: int = -1
    epoch: int = -1


ProducerReply = Callable[[ProducerResult, int], None]
"""A function that is called once with the result of a request about a producer (`ProducerResult`) and the current time (ms)."""


@dataclass(frozen=True, slots=True)
class EndRequest:
    """A request to commit or abort a transaction.

    client_version: the transaction version of the producer. is_from_client: False if the coordinator aborts because of a timeout or a fence.
    """

    transactional_id: str
    producer_id: int
    epoch: int
    commits: bool
    client_version: int
    is_from_client: bool = True


@dataclass(frozen=True, slots=True)
class VerificationRequest:
    """A question of a partition's leader to the transaction coordinator: whether partitions are in the transaction of a producer.

    partitions: the partitions of the leader's broker to which the producer writes. adds: whether the coordinator adds those that are not yet in the
    transaction (transaction version 2), or only verifies. retries: whether to ask again while the coordinator is completing the producer's previous
    transaction.
    """

    transactional_id: str
    producer_id: int
    epoch: int
    partitions: Collection[PartitionKey]
    adds: bool
    retries: bool


Verified = Callable[[dict[PartitionKey, int], int], None]
"""A function that is called once with a dict of partitions to error codes, and the current time (ms)."""


class TransactionMarker(NamedTuple):
    """The marker that ends the transaction of a producer. client_version: the transaction version of the producer (KIP-890)."""

    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int
    client_version: int
