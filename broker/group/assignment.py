"""The partitions that are assigned to a member of a consumer group (KIP-848)."""

from __future__ import annotations

from collections.abc import Mapping

from kafkaproto.hash_order import java_order, uuid_hash_bits

Assignment = Mapping[bytes, frozenset[int]]
"""Maps topic ids to partition indexes. Topics without partitions are left out."""
Place = tuple[bytes, int]
"""Identifies an assigned partition: (topic id, partition index)."""

NOTHING: Assignment = {}


def in_topic_order(assignment: Assignment) -> list[tuple[bytes, frozenset[int]]]:
    """Return the items of an assignment in the order in which Kafka's responses list the topics: that of a Java `HashMap` of topic ids (GN-27)."""
    return [(topic_id, assignment[topic_id]) for topic_id in java_order(sorted(assignment), uuid_hash_bits)]
