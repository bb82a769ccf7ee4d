"""Where replicas go: leaders round the brokers, replicas on distinct racks while there are any (`StripedReplicaPlacer`).

Deterministic on purpose: partition p of a new topic is led by the p-th broker, so that a test can know it beforehand.
"""

from __future__ import annotations

from collections.abc import Mapping


def by_turns_of_racks(racks: Mapping[int, str | None]) -> list[int]:
    """Broker ids in an order in which neighbours differ in rack as far as possible; by id where racks do not matter."""
    groups: dict[str | None, list[int]] = {}
    for broker_id in sorted(racks):
        groups.setdefault(racks[broker_id], []).append(broker_id)
    queues = list(groups.values())
    order: list[int] = []
    while any(queues):
        order += [queue.pop(0) for queue in queues if queue]
    return order


def assign(
    partitions: int, replication_factor: int, racks: Mapping[int, str | None], first: int = 0
) -> list[tuple[int, ...]]:
    """Replicas of each partition, the preferred leader first. `first`: number of the first partition (for added partitions).

    Each round over the brokers shifts the followers by one, so that the partitions of a dead leader spread over the others.
    """
    order = by_turns_of_racks(racks)
    count = len(order)
    result = []
    for number in range(first, first + partitions):
        start = number % count
        shift = (number // count) % max(1, count - 1)
        followers = (
            [order[(start + 1 + (shift + i) % (count - 1)) % count] for i in range(count - 1)] if count > 1 else []
        )
        result.append((order[start], *followers[: replication_factor - 1]))
    return result
