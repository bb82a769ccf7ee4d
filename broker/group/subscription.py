"""Decoding of the topics in the subscription that a consumer sends with JoinGroup. A coordinator uses no other part of the subscription.

Corresponds to `ConsumerProtocol.deserializeConsumerProtocolSubscription` in Kafka.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

CONSUMER_PROTOCOL = "consumer"


class ImpossibleSize(ValueError):
    """Raised if a number or length in a subscription is negative or exceeds the data.

    Kafka's coordinator does not handle this error: the group stays in the join phase, and its members get no response (GC-65).
    """


def subscribed_topics(metadatas: Iterable[bytes]) -> frozenset[str] | None:
    """Return all topics to which members subscribe; None if a subscription cannot be decoded.

    metadatas: for each member its encoded subscription, which JoinGroup calls the metadata of a protocol.
    """
    try:
        return _all_topics(metadatas)
    except (struct.error, ValueError):
        return None


def have_impossible_size(metadatas: Iterable[bytes]) -> bool:
    """Return whether decoding the subscriptions in order fails with ImpossibleSize, an error that Kafka's coordinator does not handle.

    Decoding stops at the first invalid subscription. The result is False if that subscription has another error, or if all subscriptions are valid.
    metadatas: the encoded subscriptions.
    """
    try:
        _all_topics(metadatas)
    except ImpossibleSize:
        return True
    except (struct.error, ValueError):
        pass
    return False


def _all_topics(metadatas: Iterable[bytes]) -> frozenset[str]:
    """Return the topics of all encoded subscriptions. Raises struct.error, ImpossibleSize or ValueError at the first subscription that is invalid."""
    return frozenset(topic for metadata in metadatas for topic in _topics(metadata))


def _topics(data: bytes) -> list[str]:
    """Return the topics of one encoded subscription, which is decoded as version 0 whatever its version is.

    Fields that later versions add are ignored. The user data after the topics is checked, but not returned.
    """
    [version] = struct.unpack_from(">h", data)
    if version < 0:
        raise ValueError(
            f"a member's subscription of {len(data)} bytes: the version, at byte 0, must be at least 0 (got {version})"
        )
    [count] = struct.unpack_from(">i", data, 2)
    if not 0 <= count <= len(data) - 6:
        raise ImpossibleSize(
            f"a member's subscription of {len(data)} bytes: the number of topics, at byte 2, must be from 0 to {len(data) - 6}, "
            f"the number of bytes after it (got {count})"
        )
    topics, position = [], 6
    for _ in range(count):
        [length] = struct.unpack_from(">h", data, position)
        position += 2 + length
        if not 0 <= length <= position <= len(data):
            raise ImpossibleSize(
                f"a member's subscription of {len(data)} bytes: the length of the topic name at byte {position - length} must be from 0 to "
                f"{len(data) - position + length}, the number of bytes from there on (got {length})"
            )
        topics.append(data[position - length : position].decode(errors="replace"))
    [length] = struct.unpack_from(">i", data, position)
    if length > len(data) - position - 4:
        raise ImpossibleSize(
            f"a member's subscription of {len(data)} bytes: the length of the user data, at byte {position}, must be at most "
            f"{len(data) - position - 4}, the number of bytes after it (got {length})"
        )
    return topics
