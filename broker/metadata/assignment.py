"""Where replicas go: leaders round the brokers, replicas on distinct racks while there are any (`StripedReplicaPlacer`).

Deterministic on purpose: partition p of a new topic is led by the p-th broker, so that a test can know it beforehand.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping


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
    partitions: int,
    replication_factor: int,
    racks: Mapping[int, str | None],
    first: int = 0,
    down: Collection[int] = (),
) -> list[tuple[int, ...]]:
    """Replicas of each partition, the preferred leader first. `first`: number of the first partition (for added partitions).

    Each round over the brokers shifts the followers by one, so that the partitions of a dead leader spread over the others.
    Brokers that are `down` lead nothing, and follow where their rack has no other broker left. One must not be.
    """
    order = by_turns_of_racks(racks)
    leaders = [broker_id for broker_id in order if broker_id not in down]
    count = len(leaders)
    result = []
    for number in range(first, first + partitions):
        start = order.index(leaders[number % count])
        others = order[start + 1 :] + order[:start]
        shift = (number // count) % max(1, len(others))
        candidates = sorted([*others[shift:], *others[:shift]], key=lambda broker_id: broker_id in down)
        result.append(_spread([order[start], *candidates], replication_factor, racks))
    return result


def _spread(candidates: list[int], wanted: int, racks: Mapping[int, str | None]) -> tuple[int, ...]:
    """The first `wanted` of `candidates`, but none from a rack that has one already while there is another rack."""
    chosen: list[int] = []
    left = candidates
    while left and len(chosen) < wanted:
        used = {racks[broker_id] for broker_id in chosen}
        if used >= {racks[broker_id] for broker_id in left}:
            # A round over the racks is complete, or begins: each may give one more.
            used = set()
        for broker_id in left:
            if racks[broker_id] not in used and len(chosen) < wanted:
                used.add(racks[broker_id])
                chosen.append(broker_id)
        left = [broker_id for broker_id in left if broker_id not in chosen]
    return tuple(chosen)
