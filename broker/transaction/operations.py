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
    """A request of a broker to the transaction coordinator: check that a producer's transaction contains partitions, or add them to it.

    partitions: the partitions to which the producer writes, all led by the broker that sends the request. adds: True to add the partitions that the
    transaction lacks (transaction version 2), False to check only. retries: whether to repeat the request while the coordinator is completing the
    producer's previous transaction.
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
