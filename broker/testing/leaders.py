"""The search for the broker that coordinates a group or transactional id, for error messages of the test API."""

from __future__ import annotations

from collections.abc import Iterable

from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.metadata.image import NO_LEADER
from kafkaproto.error_codes import ErrorCode
from kafkaproto.partitioner import java_hash


def missing_coordinator(cluster: Cluster, internal_topic: str, key: str, counts: Iterable[int]) -> str | None:
    """Return why no running broker leads the partition of an internal topic that stores a group or transactional id; None if one does.

    key: the group or transactional id. counts: the numbers of partitions from which the running brokers compute the partition of the id. If
    partitions were added to the topic, brokers may compute different partitions (M-8). The result then names the first of these partitions that has
    no running leader. The result is also None if the topic does not exist.
    """
    topic = cluster.controller.image.topics.get(internal_topic)
    if topic is None:
        return None
    for index in sorted({java_hash(key) % count for count in {*counts, len(topic.partitions)} if count}):
        leader = topic.partitions[index].leader
        if leader == NO_LEADER:
            return f"{internal_topic}-{index} has no leader"
        if not cluster.nodes[leader].running:
            return f"broker {leader}, which leads {internal_topic}-{index}, is stopped"
    return None


def check_loaded(
    named_id: str, internal_topic: str, loading_broker_id: int | None, missing: str | None, wait: str
) -> None:
    """Raise an error if a group or transactional id that was not found may exist, because no running coordinator has loaded it.

    named_id: the id with its kind, such as "group 'readers'". loading_broker_id: the broker that is loading the id's partition of `internal_topic`;
    None if no broker is. missing: why the id has no coordinator, or None, as `missing_coordinator` returns it. wait: for the error message, the
    call of the test API that waits until the id is loaded.

    Raises KafkaError COORDINATOR_LOAD_IN_PROGRESS (14) or COORDINATOR_NOT_AVAILABLE (15).
    """
    if loading_broker_id is not None:
        raise KafkaError(
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            f"broker {loading_broker_id} is still loading the {named_id} from {internal_topic}, if it exists; call {wait} first",
        )
    if missing is not None:
        raise KafkaError(
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            f"the {named_id}, if it exists, has no coordinator, because {missing}; start a broker that has this partition",
        )
