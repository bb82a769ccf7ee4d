"""Limits the bytes that one broker sends to followers and receives from leaders for throttled replicas (KIP-73).

This module counts bytes and reports whether they exceed the limit; `broker.replication` and `broker.fetch` then decide what to leave out
(R-4, R-6, R-7). It does not depend on logs, requests or in-sync replicas. It corresponds to Kafka's `ReplicationQuotaManager`.
"""

from __future__ import annotations

import re

from kafkaproto.broker.config.java_text import java_trim
from kafkaproto.broker.quota.windows import DEFAULT_SAMPLES, DEFAULT_WINDOW_MS, SimpleRate

NO_LIMIT = 2**63 - 1
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"

_ITEM = re.compile("([0-9]+)[:-]([0-9]+)")


class AllPartitions:
    """The item `*` in a topic's list of throttled replicas: it stands for every partition of the topic, on every broker."""

    def __contains__(self, index: object) -> bool:
        return True

    def __bool__(self) -> bool:
        return True


ALL = AllPartitions()


def partitions_on(text: str, broker_id: int) -> AllPartitions | frozenset[int]:
    """Return the partitions of a topic that are throttled on one broker (R-1). text: a valid value of the topic's list of throttled replicas."""
    text = java_trim(text)
    if text == "*":
        return ALL
    matches = (_ITEM.fullmatch(java_trim(item)) for item in text.split(","))
    return frozenset(int(item[1]) for item in matches if item is not None and int(item[2]) == broker_id)


class ReplicationQuota:
    """The replication quota of one broker in one direction: sending or receiving. Bytes are counted only while it is `active`.

    A quota is active if a replica is listed as throttled or a rate is set. group: the group of the quota's metrics, LeaderReplication or
    FollowerReplication (R-10). The rate is in bytes per second, times are in ms.
    """

    __slots__ = ("_listed", "_sample_count", "_samples", "_window_ms", "active", "bound", "group")

    def __init__(self, group: str, samples: int = DEFAULT_SAMPLES, window_ms: int = DEFAULT_WINDOW_MS) -> None:
        self.group = group
        self.bound = NO_LIMIT
        self.active = False
        self._sample_count = samples
        self._window_ms = window_ms
        self._samples = SimpleRate(samples, window_ms)
        self._listed: dict[str, AllPartitions | frozenset[int]] = {}

    def limit(self, rate: int) -> None:
        """Set the limit to `rate` bytes a second. The limit also applies to bytes that were counted before. NO_LIMIT removes the limit."""
        self.bound = rate
        self._update_active()

    def list_topic(self, topic: str, partitions: AllPartitions | frozenset[int]) -> None:
        """Replace the list of a topic's partitions that are throttled on this broker. An empty list throttles none of them."""
        if partitions:
            self._listed[topic] = partitions
        else:
            self._listed.pop(topic, None)
        self._update_active()

    def _update_active(self) -> None:
        self.active = bool(self._listed) or self.bound != NO_LIMIT

    def forget_samples(self) -> None:
        """Reset the measured rate to 0, as a restart of the broker does."""
        self._samples = SimpleRate(self._sample_count, self._window_ms)

    def lists(self, topic: str, index: int) -> bool:
        """Return whether a partition is in this broker's list of throttled replicas."""
        throttled_indexes = self._listed.get(topic)
        return throttled_indexes is not None and index in throttled_indexes

    def exceeded(self, now_ms: int) -> bool:
        """Return whether the current rate is above the configured rate of this quota; an equal rate is allowed (R-3)."""
        return self.bound != NO_LIMIT and self._samples.measure(now_ms) > self.bound

    def record(self, size_bytes: int, now_ms: int) -> None:
        """Count `size_bytes` bytes of throttled replicas that were sent or received. Even 0 bytes count and may start a new window (Q-2)."""
        self._samples.record(size_bytes, now_ms)

    def rate(self, now_ms: int) -> float:
        """Return the current rate in bytes a second, without changing any sample."""
        return self._samples.peek(now_ms)


_RESPONSE_BYTES = 16
"""The bytes that the replication quota counts for a Fetch response without partitions.

They are 12 for the body (v13 to v17), and 4 that `FetchResponse.sizeOf` adds.
"""
_TOPIC_BYTES = 18
_PARTITION_BYTES = 36


def response_bytes(partitions: list[tuple[str, int]]) -> int:
    """Return how many bytes are counted against the replication quota for a response to a follower (R-5).

    partitions: (topic, size of the records in bytes) for each throttled partition in the response. The result is the size of an encoded response
    with topic ids, as Kafka's followers get it. It is computed from the sizes: the brokers of this cluster exchange records in memory and encode no
    such response.
    """
    total = _RESPONSE_BYTES
    topics: list[int] = []
    last = None
    for topic, size_bytes in partitions:
        if topic != last:
            topics.append(0)
            last = topic
        topics[-1] += 1
        total += _PARTITION_BYTES + _length_bytes(size_bytes + 1) + size_bytes
    # One byte for a count of up to 126 is in the constants.
    return total + sum(_TOPIC_BYTES + _length_bytes(n + 1) - 1 for n in topics) + _length_bytes(len(topics) + 1) - 1


def _length_bytes(value: int) -> int:
    """Return how many bytes the unsigned varint of `value` takes."""
    return max(1, -(-value.bit_length() // 7))
