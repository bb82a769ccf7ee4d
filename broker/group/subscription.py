"""The topics that a consumer's subscription names: the only thing a coordinator reads of a member's metadata.

Knows the start of ConsumerProtocolSubscription, which is the same in all its versions: version, then the topics.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

CONSUMER_PROTOCOL = "consumer"


def subscribed_topics(metadatas: Iterable[bytes]) -> frozenset[str] | None:
    """All topics of the members' metadata; None if one of them cannot be read, so that nobody relies on it."""
    topics: set[str] = set()
    try:
        for metadata in metadatas:
            topics.update(_topics(metadata))
    except (struct.error, ValueError):
        return None
    return frozenset(topics)


def _topics(metadata: bytes) -> Iterable[str]:
    version, count = struct.unpack_from(">hi", metadata)
    # Each name takes at least its length: a false count must not be believed.
    if version < 0 or not 0 <= count <= len(metadata) // 2:
        raise ValueError("not a subscription")
    position = 6
    for _ in range(count):
        (length,) = struct.unpack_from(">h", metadata, position)
        name = metadata[position + 2 : position + 2 + length]
        if length < 0 or len(name) != length:
            raise ValueError("not a subscription")
        yield name.decode()
        position += 2 + length
