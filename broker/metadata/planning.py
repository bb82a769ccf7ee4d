"""The plan of a new or larger topic: the checks of CreateTopics and CreatePartitions, and where replicas go.

Functions of an image: nothing changes here, the controller publishes what they return.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random

from kafkaproto.broker.config.values import ClusterConfig, ConfigError, check_topic_settings
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.metadata.assignment import assign
from kafkaproto.broker.metadata.image import Image, PartitionState, Topic
from kafkaproto.error_codes import ErrorCode

MOST_PARTITIONS = 10_000
"""Of one topic. Kafka has the same limit for one request (`ReplicationControlManager`); without it one number takes all memory."""
_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}\Z")


def topic_name_is_legal(name: str) -> bool:
    """1 to 249 of [a-zA-Z0-9._-], and neither "." nor ".." (M-3)."""
    return _LEGAL_NAME.match(name) is not None and name not in (".", "..")


def plan_topic(
    image: Image,
    config: ClusterConfig,
    rng: Random,
    name: str,
    partitions: int = -1,
    replication_factor: int = -1,
    assignment: Mapping[int, Sequence[int]] | None = None,
    configs: Mapping[str, str] | None = None,
) -> Topic:
    """Check a topic to be and lay it out; nothing changes. -1 takes num.partitions, default.replication.factor.

    Raises KafkaError 17, 36, 37, 38, 39, 40, 44 as CreateTopics answers them.
    """
    if not topic_name_is_legal(name):
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic name {name!r} is illegal: use 1 to 249 of a-z A-Z 0-9 . _ - and neither '.' nor '..'",
        )
    if name in image.topics:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    _check_metric_name(image, name)
    try:
        check_topic_settings(configs or {}, config.strict_kip)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None
    count = len(assignment) if assignment else partitions
    if count > MOST_PARTITIONS:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION, f"{count} partitions were asked for; a topic has {MOST_PARTITIONS} at most."
        )
    replicas = _given(image, assignment) if assignment else _laid_out(image, config, partitions, replication_factor)
    topic_id = rng.randbytes(16)
    states = tuple(_new_partition(image, i, r) for i, r in enumerate(replicas))
    return Topic(name, topic_id, states, dict(configs or {}))


def _check_metric_name(image: Image, name: str) -> None:
    """Dots and underscores are the same in Kafka's metrics. Raises KafkaError 17."""
    if "." in name or "_" in name:
        plain = name.replace(".", "_")
        for other in image.topics:
            if len(other) == len(name) and other.replace(".", "_") == plain:
                raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with topic '{other}'.")


def plan_partitions(
    image: Image,
    name: str,
    count: int,
    assignments: Sequence[Sequence[int]] | None,
    counted: Callable[[int], None] = lambda _: None,
) -> Topic:
    """The topic with partitions added so that there are `count`; nothing changes.

    assignments: replicas of each new one, None to have them laid out. counted: is told how many are to be added when that is
    known to be right, and before it is looked where they lie. Raises KafkaError 3, 37, 38, 39, 44 as CreatePartitions does, and what
    `counted` raises.
    """
    topic = image.topics.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name}.")
    present = len(topic.partitions)
    if count <= present:
        why = "has as many already" if count == present else f"has {present}, and they never become fewer"
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"{count} partitions were asked for; {name} {why}.")
    if count > MOST_PARTITIONS:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION, f"{count} partitions were asked for; a topic has {MOST_PARTITIONS} at most."
        )
    wanted = count - present
    if assignments is not None and len(assignments) != wanted:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{wanted} partitions are to be added, {len(assignments)} assignments were given.",
        )
    counted(wanted)
    if assignments is None:
        replicas = _spread(image, wanted, topic.replication_factor, first=present)
    else:
        for given in assignments:
            _check_new_replicas(image, given, topic.replication_factor)
        replicas = [tuple(given) for given in assignments]
    added = tuple(_new_partition(image, present + i, r) for i, r in enumerate(replicas))
    return replace(topic, partitions=topic.partitions + added)


def _new_partition(image: Image, index: int, replicas: tuple[int, ...]) -> PartitionState:
    isr = tuple(r for r in replicas if image.is_alive(r))
    return PartitionState(index, replicas, isr, isr[0], 0, 0)


def _laid_out(image: Image, config: ClusterConfig, partitions: int, replication_factor: int) -> list[tuple[int, ...]]:
    count = config.get(-1, "num.partitions") if partitions == -1 else partitions
    factor = config.get(-1, "default.replication.factor") if replication_factor == -1 else replication_factor
    if count <= 0:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Number of partitions was {count}; it must be 1 or more.")
    if factor <= 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR, f"Replication factor was {factor}; it must be 1 or more."
        )
    return _spread(image, count, factor)


def _spread(image: Image, count: int, factor: int, first: int = 0) -> list[tuple[int, ...]]:
    racks = {b.broker_id: b.rack for b in image.brokers.values()}
    down = [b.broker_id for b in image.brokers.values() if not b.alive]
    wrong = ErrorCode.INVALID_REPLICATION_FACTOR
    if factor > len(racks):
        raise KafkaError(wrong, f"Replication factor {factor} is larger than the {len(racks)} brokers that there are.")
    if len(down) == len(racks):
        raise KafkaError(wrong, "No broker is alive.")
    return assign(count, factor, racks, first, down)


def _given(image: Image, assignment: Mapping[int, Sequence[int]]) -> list[tuple[int, ...]]:
    if sorted(assignment) != list(range(len(assignment))):
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Partitions must be a consecutive 0-based sequence.")
    for replicas in assignment.values():
        _check_new_replicas(image, replicas, len(assignment[0]))
    return [tuple(assignment[i]) for i in range(len(assignment))]


def _check_new_replicas(image: Image, replicas: Sequence[int], factor: int) -> None:
    """Check the replicas of a new partition, one of which must be alive to lead it. Raises KafkaError 39."""
    check_replicas(image, replicas, factor)
    if not any(map(image.is_alive, replicas)):
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"None of {list(replicas)} is alive.")


def check_replicas(image: Image, replicas: Sequence[int], factor: int | None = None) -> None:
    """Check that a partition can have these replicas, `factor` of them if that is given. Raises KafkaError 39."""
    wrong = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    if not replicas:
        raise KafkaError(wrong, "A partition needs one replica at least.")
    if len(set(replicas)) != len(replicas):
        raise KafkaError(wrong, f"{list(replicas)} names a broker twice.")
    unknown = [r for r in replicas if r not in image.brokers]
    if unknown:
        raise KafkaError(wrong, f"Broker {unknown[0]} does not exist.")
    if factor is not None and len(replicas) != factor:
        raise KafkaError(wrong, f"{list(replicas)} are {len(replicas)} replicas, the other partitions have {factor}.")
