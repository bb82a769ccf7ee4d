"""A client of ``Assignors.java``, which runs Kafka's own assignors of consumer groups (KIP-848)."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence

from kafkaproto.broker.group.assignment import Assignment, Indexes
from kafkaproto.broker.group.member_subscription import MemberSubscription
from tests.support.oracle.oracle import Process


class AssignorOracle(Process):
    """Kafka's `UniformAssignor` and `RangeAssignor`, called with the same arguments as this broker's assignors."""

    program = "Assignors.java"

    def assign(
        self, name: str, members: Sequence[MemberSubscription], counts: Mapping[bytes, int]
    ) -> dict[str, Assignment]:
        """Return the target assignments that one of Kafka's assignors computes, in their order. name: `uniform` or `range`."""
        group = {
            "homogeneous": is_homogeneous(members),
            "topics": {_text(topic_id): count for topic_id, count in counts.items()},
            "members": {
                member.member_id: {
                    "instance": member.instance_id,
                    "topics": [_text(topic_id) for topic_id in member.topic_ids],
                    "target": {_text(topic_id): list(indexes) for topic_id, indexes in member.target.items()},
                }
                for member in members
            },
        }
        targets = json.loads(self.ask(name, json.dumps(group, separators=(",", ":"))))
        return {
            member_id: {_bytes(topic_id): Indexes(indexes) for topic_id, indexes in target.items() if indexes}
            for member_id, target in targets.items()
        }


def is_homogeneous(members: Sequence[MemberSubscription]) -> bool:
    """Return whether all members subscribe to the same topics."""
    return len({frozenset(member.topic_ids) for member in members}) <= 1


def _text(topic_id: bytes) -> str:
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")
