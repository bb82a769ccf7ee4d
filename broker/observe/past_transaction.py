"""The class `PastTransaction`: a past or current transaction, as `past_transactions` of a test cluster returns it.

The class has a module of its own, which a broker imports only once there is a transaction, so that it starts faster.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafkaproto.broker.transaction.changes import ONGOING
from kafkaproto.broker.transaction.operations import PartitionKey


@dataclass(slots=True, repr=False)
class PastTransaction:
    """One transaction of a producer, which may still be open. It begins when its first partition is added.

    at_ms: when the transaction began, in ms of the cluster's clock. elapsed_ms: `at_ms` counted from the cluster's start or last reset.
    """

    at_ms: int
    broker_id: int
    """The id of the broker that coordinates the transactional id."""
    transactional_id: str
    """The `transactional.id` of the producer."""
    producer_id: int
    """The id that the coordinator gave to the producer."""
    epoch: int
    """The epoch of the producer when the transaction began."""
    partitions: tuple[PartitionKey, ...]
    """All partitions added to the transaction, including that of `__consumer_offsets` for each group whose offsets the transaction contains."""
    state: str = ONGOING
    """The last state of the transaction, under Kafka's name, such as "CompleteCommit"."""
    cause: str | None = None
    """Why the transaction ended, such as "its timeout passed"; None while it is open."""
    decided_ms: int | None = None
    """How many milliseconds after its start the transaction's commit or abort was decided; None while it is open."""
    duration_ms: int | None = None
    """How long the transaction took until all its markers were written, in milliseconds; None before that."""
    elapsed_ms: int = 0

    def __str__(self) -> str:
        duration_text = "" if self.decided_ms is None else f" after {self.decided_ms} ms"
        if self.duration_ms is not None and self.decided_ms is not None:
            duration_text += f" and {self.duration_ms - self.decided_ms} ms for its markers"
        cause = "" if self.cause is None else f": {self.cause}"
        partitions = ", ".join(f"{topic}-{index}" for topic, index in self.partitions) or "no partitions"
        return (
            f"+{self.elapsed_ms / 1000:.3f} s broker {self.broker_id} transaction {self.transactional_id} of producer {self.producer_id} "
            f"epoch {self.epoch}: {self.state}{duration_text} with {partitions}{cause}"
        )

    def __repr__(self) -> str:
        return f"<PastTransaction {self}>"
