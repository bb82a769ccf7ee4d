"""The list "What is not done yet" of the README, made from what the code says of itself: a gap list kept by hand rots.

usage: python -m tests.not_done [--write]
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from broker.cluster import Cluster
from broker.release import RELEASES
from broker.settings import BROKER_SETTINGS, TOPIC_SETTINGS

PAGE = Path(__file__).resolve().parent.parent / "README.md"
BEGIN, END = "<!-- not done -->", "<!-- /not done -->"

KAFKA_3_9: dict[str, tuple[int, int, int]] = {
    "Produce": (0, 0, 11),
    "Fetch": (1, 0, 17),
    "ListOffsets": (2, 0, 9),
    "Metadata": (3, 0, 12),
    "OffsetCommit": (8, 0, 9),
    "OffsetFetch": (9, 0, 9),
    "FindCoordinator": (10, 0, 6),
    "JoinGroup": (11, 0, 9),
    "Heartbeat": (12, 0, 4),
    "LeaveGroup": (13, 0, 5),
    "SyncGroup": (14, 0, 5),
    "DescribeGroups": (15, 0, 5),
    "ListGroups": (16, 0, 5),
    "SaslHandshake": (17, 0, 1),
    "ApiVersions": (18, 0, 4),
    "CreateTopics": (19, 0, 7),
    "DeleteTopics": (20, 0, 6),
    "DeleteRecords": (21, 0, 2),
    "InitProducerId": (22, 0, 5),
    "OffsetForLeaderEpoch": (23, 0, 4),
    "AddPartitionsToTxn": (24, 0, 5),
    "AddOffsetsToTxn": (25, 0, 4),
    "EndTxn": (26, 0, 4),
    "WriteTxnMarkers": (27, 0, 1),
    "TxnOffsetCommit": (28, 0, 4),
    "DescribeAcls": (29, 0, 3),
    "CreateAcls": (30, 0, 3),
    "DeleteAcls": (31, 0, 3),
    "DescribeConfigs": (32, 0, 4),
    "AlterConfigs": (33, 0, 2),
    "AlterReplicaLogDirs": (34, 0, 2),
    "DescribeLogDirs": (35, 0, 4),
    "SaslAuthenticate": (36, 0, 2),
    "CreatePartitions": (37, 0, 3),
    "CreateDelegationToken": (38, 0, 3),
    "RenewDelegationToken": (39, 0, 2),
    "ExpireDelegationToken": (40, 0, 2),
    "DescribeDelegationToken": (41, 0, 3),
    "DeleteGroups": (42, 0, 2),
    "ElectLeaders": (43, 0, 2),
    "IncrementalAlterConfigs": (44, 0, 1),
    "AlterPartitionReassignments": (45, 0, 0),
    "ListPartitionReassignments": (46, 0, 0),
    "OffsetDelete": (47, 0, 0),
    "DescribeClientQuotas": (48, 0, 1),
    "AlterClientQuotas": (49, 0, 1),
    "DescribeUserScramCredentials": (50, 0, 0),
    "AlterUserScramCredentials": (51, 0, 0),
    "DescribeQuorum": (55, 0, 2),
    "UpdateFeatures": (57, 0, 1),
    "DescribeCluster": (60, 0, 1),
    "DescribeProducers": (61, 0, 0),
    "UnregisterBroker": (64, 0, 0),
    "DescribeTransactions": (65, 0, 0),
    "ListTransactions": (66, 0, 1),
    "ConsumerGroupHeartbeat": (68, 0, 0),
    "ConsumerGroupDescribe": (69, 0, 0),
    "GetTelemetrySubscriptions": (71, 0, 0),
    "PushTelemetry": (72, 0, 0),
    "ListClientMetricsResources": (74, 0, 0),
    "DescribeTopicPartitions": (75, 0, 0),
    "AddRaftVoter": (80, 0, 0),
    "RemoveRaftVoter": (81, 0, 0),
}
"""Name to (key, lowest, highest version) of all stable APIs on the listener of a 3.9 broker. A test compares it with Kafka's jar."""


def missing_apis() -> list[str]:
    """What is not answered at all, by key."""
    offered = Cluster().apis
    return [name for name, (key, _, _) in KAFKA_3_9.items() if key not in offered]


def narrower_apis() -> list[str]:
    """What is answered in fewer versions than Kafka 3.9 has."""
    offered = Cluster().apis
    found = []
    for name, (key, low, high) in KAFKA_3_9.items():
        one = offered.get(key)
        if one is not None and (one.min_version, one.max_version) != (low, high):
            found.append(f"{name} {one.min_version} to {one.max_version} (Kafka: {low} to {high})")
    return found


def settings_without_effect() -> list[str]:
    """Settings that are accepted and, so far, change nothing."""
    broker = {name for name, setting in BROKER_SETTINGS.items() if not setting.acts}
    return sorted(broker) + sorted(
        name for name, setting in TOPIC_SETTINGS.items() if not setting.acts and name not in broker
    )


def text() -> str:
    """The list, as the README has it."""
    missing, narrower, idle = missing_apis(), narrower_apis(), settings_without_effect()
    lines = [
        f"- **APIs of Kafka 3.9 that are not answered yet ({len(missing)} of {len(KAFKA_3_9)}):** {', '.join(missing) or 'none'}. "
        "They are not advertised either, so clients know.",
        f"- **APIs answered in fewer versions:** {', '.join(narrower) or 'none'}.",
        f"- **Releases:** {', '.join(RELEASES)} and no other.",
        f"- **Settings that are accepted, and say so when set, but change nothing yet ({len(idle)}):** "
        + ", ".join(f"`{name}`" for name in idle)
        + ".",
    ]
    return "\n".join(lines)


def rewritten(page: str) -> str:
    """The README with the list as it should be. Raises ValueError when it has no place for it."""
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise ValueError(f"README.md must have {BEGIN} and {END} once")
    return re.sub(f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n{text()}\n{END}", page, flags=re.DOTALL)


def main() -> int:
    page = PAGE.read_text()
    wanted = rewritten(page)
    if "--write" in sys.argv[1:]:
        PAGE.write_text(wanted)
        return 0
    if page != wanted:
        sys.stderr.write(
            "README.md: the list of what is not done is not current; run python -m tests.not_done --write\n"
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
