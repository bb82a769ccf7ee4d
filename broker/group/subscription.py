"""Decoding of the topics in the subscription that a consumer sends with JoinGroup. A coordinator uses no other part of the subscription.

This module decodes the start of ConsumerProtocolSubscription, which is the same in all versions: version, then topics.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

CONSUMER_PROTOCOL = "consumer"


def subscribed_topics(metadatas: Iterable[bytes]) -> frozenset[str] | None:
    """Return all topics to which members subscribe; None if a subscription cannot be decoded.

    metadatas: for each member its encoded subscription, which JoinGroup calls the metadata of a protocol.
    """
    topics: set[str] = set()
    try:
        for metadata in metadatas:
            topics.update(_topics(metadata))
    except (struct.error, ValueError):
        return None
    return frozenset(topics)


def _topics(metadata: bytes) -> Iterable[str]:
    version, count = struct.unpack_from(">hi", metadata)
    # Each name takes at least the bytes of its length, so a larger count is wrong.
    if version < 0 or not 0 <= count <= len(metadata) // 2:
        raise ValueError(
            f"invalid subscription of a group member: the version must be at least 0 (got {version}), "
            f"and the number of topics 0 to {len(metadata) // 2} (got {count})"
        )
    position = 6
    for _ in range(count):
        (length,) = struct.unpack_from(">h", metadata, position)
        name = metadata[position + 2 : position + 2 + length]
        if length < 0 or len(name) != length:
            raise ValueError(
                f"invalid subscription of a group member: a topic name must take 0 to {len(metadata) - position - 2} bytes (got {length})"
            )
        yield name.decode()
        position += 2 + length
