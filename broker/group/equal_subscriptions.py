"""The assignor `uniform` for members with the same subscription (Kafka's `UniformHomogeneousAssignmentBuilder`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkaproto.broker.group.assignment import Assignment
from kafkaproto.broker.group.member_subscription import MemberSubscription, Share, free_places, topic_order
from kafkaproto.hash_order import copy_table


def share_out(
    members: Sequence[MemberSubscription], counts: Mapping[bytes, int], *, is_release_4_1: bool
) -> dict[str, Assignment]:
    """Give all members the same number of partitions, or one more to some. A partition moves only if its owner has too many (GN-42).

    If the partitions cannot be divided equally, some members get an extra partition each. Before 4.1, these are the first members. From 4.1 on, they
    are the first members for which one of these conditions is true (GN-43): the member already owns more partitions than members without an extra
    partition get, or fewer members follow than extra partitions remain.

    members: in the order in which Kafka visits them. counts: maps topic ids to numbers of partitions. is_release_4_1: whether the rules of Kafka 4.1
    and later apply. Returns the new target of each member by member id.
    """
    if not members:
        return {}
    shares = {member.member_id: Share(member, counts) for member in members}
    topic_ids = topic_order(members[0].topic_ids, copy_table(max(members[0].subscribed, len(members[0].topic_ids))))
    unassigned = free_places(topic_ids, counts, shares.values())
    quota, extra_count = divmod(sum(counts[topic_id] for topic_id in topic_ids), len(members))
    missing: dict[str, int] = {}
    for position, member in enumerate(members):
        share = shares[member.member_id]
        must_take = not is_release_4_1 or len(share) > quota or extra_count > len(members) - position - 1
        takes_extra = extra_count > 0 and must_take
        extra_count -= takes_extra
        for place in list(share.places)[quota + takes_extra :]:
            unassigned.append(place)
            share.remove(place)
        missing[member.member_id] = quota + takes_extra - len(share)
    next_free = 0
    for member_id, count in missing.items():
        if count:
            shares[member_id].copy()  # Kafka copies a target even if no partition is left to add
        for place in unassigned[next_free : next_free + count]:
            shares[member_id].add(place)
        next_free += count
    return {member_id: share.assignment() for member_id, share in shares.items()}
