"""Placement of replicas: brokers lead partitions in turn, and a partition's replicas are on different racks where possible (`StripedReplicaPlacer`).

The placement is deterministic, so that a test can predict it: the first broker leads partition 0 of a new topic, the second broker leads partition 1,
and so on, starting again after the last broker.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping


def by_turns_of_racks(racks: Mapping[int, str | None]) -> list[int]:
    """Return broker ids ordered so that consecutive brokers are on different racks where possible; ordered by id if no broker has a rack.

    racks: maps broker ids to racks, None for a broker without one.
    """
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
    """Return the replicas of each partition as broker ids, the preferred leader first.

    partitions: how many partitions to assign. first: the number of the first of these partitions, above 0 if they are added to a topic. racks: maps
    the ids of all brokers to racks, None for a broker without a rack. down: the ids of stopped brokers: they never lead, and a stopped broker becomes
    a follower only if no running broker of its rack is left to choose. At least one broker must be running.
    The running brokers lead partitions in turn. Each time that all running brokers have had a turn, the order of followers is rotated by one. So the
    partitions of one leader have different first followers. If the leader stops, its partitions are spread over the other brokers.
    """
    order = by_turns_of_racks(racks)
    leaders = [broker_id for broker_id in order if broker_id not in down]
    count = len(leaders)
    replica_lists = []
    for number in range(first, first + partitions):
        start = order.index(leaders[number % count])
        other_ids = order[start + 1 :] + order[:start]
        shift = (number // count) % max(1, len(other_ids))
        candidates = sorted([*other_ids[shift:], *other_ids[:shift]], key=lambda broker_id: broker_id in down)
        replica_lists.append(_spread([order[start], *candidates], replication_factor, racks))
    return replica_lists


def _spread(candidates: list[int], count: int, racks: Mapping[int, str | None]) -> tuple[int, ...]:
    """Return `count` of the broker ids in `candidates` on different racks, or all ids if there are fewer. Earlier candidates are preferred.

    A rack is used a second time only after every rack of the remaining candidates has been used once. racks: maps broker ids to racks. Brokers
    without a rack (None) count as brokers of one common rack.
    """
    chosen_ids: list[int] = []
    remaining_ids = candidates
    while remaining_ids and len(chosen_ids) < count:
        used_racks = {racks[broker_id] for broker_id in chosen_ids}
        if used_racks >= {racks[broker_id] for broker_id in remaining_ids}:
            # Every rack was used: each of them may be used again.
            used_racks = set()
        for broker_id in remaining_ids:
            if racks[broker_id] not in used_racks and len(chosen_ids) < count:
                used_racks.add(racks[broker_id])
                chosen_ids.append(broker_id)
        remaining_ids = [broker_id for broker_id in remaining_ids if broker_id not in chosen_ids]
    return tuple(chosen_ids)
