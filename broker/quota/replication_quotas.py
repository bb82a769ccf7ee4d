"""How fast one broker may send to followers, and take from leaders, what is on a throttled list (KIP-73).

A limit counts bytes and says whether there were too many; who is left out then is decided where replication happens
(R-4, R-6, R-7). Knows topics by name and partitions by number; must never know logs, requests or who is in sync.
Kafka's `ReplicationQuotaManager`.
"""

from __future__ import annotations

import re

from kafkaproto.broker.quota.windows import DEFAULT_SAMPLES, DEFAULT_WINDOW_MS, SimpleRate

NO_LIMIT = 2**63 - 1
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"

_ITEM = re.compile("([0-9]+)[:-]([0-9]+)")


class AllPartitions:
    """`*`: every partition of a topic, on every broker."""

    def __contains__(self, index: object) -> bool:
        return True

    def __bool__(self) -> bool:
        return True


ALL = AllPartitions()


def partitions_on(text: str, broker_id: int) -> AllPartitions | frozenset[int]:
    """The partitions that a throttled-replica list names for one broker (R-1). `text` has been checked before."""
    text = text.strip()
    if text == "*":
        return ALL
    found = (_ITEM.fullmatch(item.strip()) for item in text.split(","))
    return frozenset(int(item[1]) for item in found if item is not None and int(item[2]) == broker_id)


class ReplicationQuota:
    """One direction on one broker. `active` while something is listed or limited: otherwise nothing need be counted.

    group: the name of its metrics, LeaderReplication or FollowerReplication (R-10). rate is in bytes a second; times are ms.
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
        """Set the bound; what was counted before counts against it, too. NO_LIMIT takes it away."""
        self.bound = rate
        self._look()

    def list_topic(self, topic: str, partitions: AllPartitions | frozenset[int]) -> None:
        """Replace what is listed of a topic."""
        if partitions:
            self._listed[topic] = partitions
        else:
            self._listed.pop(topic, None)
        self._look()

    def _look(self) -> None:
        self.active = bool(self._listed) or self.bound != NO_LIMIT

    def forget_samples(self) -> None:
        """As after a start: nothing has been counted."""
        self._samples = SimpleRate(self._sample_count, self._window_ms)

    def lists(self, topic: str, index: int) -> bool:
        """Whether a partition is on the throttled list of this broker."""
        listed = self._listed.get(topic)
        return listed is not None and index in listed

    def exceeded(self, now_ms: int) -> bool:
        """Whether more came in the window than the limit allows; equal is fine (R-3)."""
        return self.bound != NO_LIMIT and self._samples.measure(now_ms) > self.bound

    def record(self, size_bytes: int, now_ms: int) -> None:
        """Count bytes that went; 0 is an event too (Q-2)."""
        self._samples.record(size_bytes, now_ms)

    def rate(self, now_ms: int) -> float:
        """Bytes a second, for somebody who only looks."""
        return self._samples.peek(now_ms)


_ANSWER_BYTES = 16
"""Kafka counts 4, and a Fetch answer (version 13 to 17) without partitions has 12."""
_TOPIC_BYTES = 18
_PARTITION_BYTES = 36


def answer_bytes(partitions: list[tuple[str, int]]) -> int:
    """What an answer to a follower counts for (R-5), where both are of one process and no message is made.

    partitions: topic and size of the records of each listed partition in it. Kafka's followers fetch by topic id.
    """
    total = _ANSWER_BYTES
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
    """How many bytes an unsigned varint takes."""
    return max(1, -(-value.bit_length() // 7))
