"""Planning of a new or larger topic: the checks of CreateTopics and CreatePartitions, and the placement of replicas.

The functions take a metadata image and change nothing; the controller publishes their results.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random

from kafkaproto.broker.config.cluster_config import ClusterConfig
from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.metadata.assignment import assign
from kafkaproto.broker.metadata.image import CLUSTER_METADATA_TOPIC, Image, PartitionState, Topic
from kafkaproto.error_codes import ErrorCode

MOST_PARTITIONS = 10_000
"""The maximum number of partitions of a topic, a limit that protects memory. Kafka has this limit per request (`ReplicationControlManager`)."""
_MANUAL_ASSIGNMENT_INCLUDES = "The manual partition assignment includes"
"""The beginning of Kafka's error messages for invalid replicas in a request."""
Assignment = Mapping[int, Sequence[int]] | Sequence[tuple[int, Sequence[int]]] | None
"""The replicas (broker ids) that a client requests for a new topic: {partition: replicas} or [(partition, replicas), ...].

None or empty: the client requests no replicas, and the broker places them.
"""
_LONGEST_NAME = 249
_LEGAL_NAME = re.compile(rf"[a-zA-Z0-9._-]{{1,{_LONGEST_NAME}}}\Z")


def topic_name_is_legal(name: str) -> bool:
    """Return whether the name has 1 to 249 characters of [a-zA-Z0-9._-] and is neither "." nor ".." (M-3)."""
    return _LEGAL_NAME.match(name) is not None and name not in (".", "..")


def check_name(name: str) -> None:
    """Raise KafkaError INVALID_TOPIC_EXCEPTION (17) with Kafka's message if a topic name is illegal (M-3)."""
    if not topic_name_is_legal(name):
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, why_illegal(name))


def why_illegal(name: str) -> str:
    """Return the message with which Kafka rejects the topic name `name`, which must be illegal (`Topic.validate`)."""
    if not name:
        reason = "the empty string is not allowed"
    elif name in (".", ".."):
        reason = f"'{name}' is not allowed"
    elif len(name) > _LONGEST_NAME:
        reason = f"the length of '{name}' is longer than the max allowed length {_LONGEST_NAME}"
    else:
        reason = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return f"Topic name is invalid: {reason}"


def plan_topic(
    image: Image,
    config: ClusterConfig,
    rng: Random,
    name: str,
    partitions: int = -1,
    replication_factor: int = -1,
    assignment: Assignment = (),
    configs: Mapping[str, str | None] | None = None,
) -> Topic:
    """Validate a new topic and place its replicas, without changing anything. The checks have the order of Kafka (AD-45).

    rng: generates the topic id. partitions, replication_factor: -1 for the settings num.partitions and default.replication.factor; both must be -1
    with an assignment. assignment: the replicas of each partition; empty to place them. configs: the topic's own settings as text; a null as value is
    invalid. Raises KafkaError with one of the errors of CreateTopics: INVALID_REQUEST, INVALID_TOPIC_EXCEPTION, TOPIC_ALREADY_EXISTS,
    INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT, INVALID_CONFIG or POLICY_VIOLATION.
    """
    if not topic_name_is_legal(name):
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic name {name!r} is illegal: use 1 to 249 characters of a-z A-Z 0-9 . _ - but neither '.' nor '..'",
        )
    if name == CLUSTER_METADATA_TOPIC:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited.")
    if name in image.topics:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    _check_metric_name(image, name)
    settings = _checked_settings(config, configs or {})
    pairs = list(assignment.items() if isinstance(assignment, Mapping) else assignment or ())
    _check_count(len(pairs) or partitions)
    if pairs and (partitions != -1 or replication_factor != -1):
        count_or_factor = "replication factor" if replication_factor != -1 else "numPartitions"
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"A manual partition assignment was specified, but {count_or_factor} was not set to -1.",
        )
    replicas = _checked_replicas(image, pairs) if pairs else _laid_out(image, config, partitions, replication_factor)
    topic_id = rng.randbytes(16)
    states = tuple(_new_partition(image, i, r) for i, r in enumerate(replicas))
    return Topic(name, topic_id, states, settings)


def _checked_settings(config: ClusterConfig, configs: Mapping[str, str | None]) -> dict[str, str]:
    """Return `configs` as the settings of a new topic. Raises KafkaError INVALID_CONFIG (40) with Kafka's message for a null or invalid value."""
    settings = {name: value for name, value in configs.items() if value is not None}
    if len(settings) < len(configs):
        nulls = ",".join(name for name in configs if name not in settings)
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {nulls}")
    try:
        config.check_topic(settings)
    except ConfigError as error:
        from kafkaproto.broker.config.rejections import topic_rejection

        raise KafkaError(ErrorCode.INVALID_CONFIG, topic_rejection(config, settings, error)) from None
    return settings


def _check_count(partitions: int) -> None:
    if partitions > MOST_PARTITIONS:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"{partitions} partitions were requested, but a topic can have at most {MOST_PARTITIONS}.",
        )


def _check_metric_name(image: Image, name: str) -> None:
    """Raise KafkaError INVALID_TOPIC_EXCEPTION (17) if the name collides with that of another topic.

    Kafka's metric names have an underscore for each dot of a topic name. Therefore two names collide if they differ only by dots and underscores,
    such as "a.b" and "a_b".
    """
    if "." in name or "_" in name:
        plain = name.replace(".", "_")
        for other in image.topics:
            if len(other) == len(name) and other.replace(".", "_") == plain:
                raise KafkaError(
                    ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}"
                )


def plan_partitions(
    image: Image,
    name: str,
    count: int,
    assignments: Sequence[Sequence[int]] | None,
    counted: Callable[[int], None] = lambda _: None,
) -> Topic:
    """Return the topic enlarged to `count` partitions, without changing anything.

    assignments: the replicas of each new partition, None to place them. counted: a function that is called with the number of new partitions, before
    the limit of partitions and the replicas are checked; its exceptions are passed on. It is not called if the number is below 1 or does not match
    `assignments`. Raises KafkaError with one of the errors of CreatePartitions: UNKNOWN_TOPIC_OR_PARTITION, INVALID_PARTITIONS,
    INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT or POLICY_VIOLATION.
    """
    topic = image.topics.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    present = len(topic.partitions)
    if count <= present:
        message = (
            f"Topic already has {present} partition(s)."
            if count == present
            else f"The topic {name} currently has {present} partition(s); {count} would not be an increase."
        )
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, message)
    added_count = count - present
    if assignments is not None and len(assignments) != added_count:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {added_count} additional partition(s), but only {len(assignments)} assignment(s) were specified.",
        )
    counted(added_count)
    _check_count(count)
    if assignments is None:
        replicas = _spread(image, added_count, topic.replication_factor, first=present)
    else:
        for index, broker_ids in enumerate(assignments, present):
            _check_new_replicas(image, index, broker_ids, topic.replication_factor)
        replicas = [tuple(broker_ids) for broker_ids in assignments]
    added = tuple(_new_partition(image, present + i, r) for i, r in enumerate(replicas))
    return replace(topic, partitions=topic.partitions + added)


def _new_partition(image: Image, index: int, replicas: tuple[int, ...]) -> PartitionState:
    isr = tuple(r for r in replicas if image.is_alive(r))
    return PartitionState(index, replicas, isr, isr[0], 0, 0)


def _laid_out(image: Image, config: ClusterConfig, partitions: int, replication_factor: int) -> list[tuple[int, ...]]:
    count = config.get(-1, "num.partitions") if partitions == -1 else partitions
    factor = config.get(-1, "default.replication.factor") if replication_factor == -1 else replication_factor
    wrong_factor = ErrorCode.INVALID_REPLICATION_FACTOR
    if factor <= 0:
        raise KafkaError(wrong_factor, "Replication factor must be larger than 0, or -1 to use the default value.")
    if count <= 0:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
    try:
        return _spread(image, count, factor)
    except KafkaError as error:
        raise KafkaError(wrong_factor, f"Unable to replicate the partition {factor} time(s): {error.message}") from None


def _spread(image: Image, count: int, factor: int, first: int = 0) -> list[tuple[int, ...]]:
    registered_brokers = [b for b in image.brokers.values() if b.registered]
    racks = {b.broker_id: b.rack for b in registered_brokers}
    down = [b.broker_id for b in registered_brokers if not b.alive]
    error_code = ErrorCode.INVALID_REPLICATION_FACTOR
    if len(down) == len(racks):
        raise KafkaError(error_code, "All brokers are currently fenced.")
    if factor > len(racks):
        raise KafkaError(
            error_code,
            f"The target replication factor of {factor} cannot be reached because only {len(racks)} broker(s) are registered.",
        )
    return assign(count, factor, racks, first, down)


def _checked_replicas(image: Image, assignment: Sequence[tuple[int, Sequence[int]]]) -> list[tuple[int, ...]]:
    """Return the requested replicas of each partition of a new topic, in the order of the partitions.

    assignment: (partition, broker ids) for each partition, in any order. Raises KafkaError INVALID_REPLICA_ASSIGNMENT (39) if it is invalid.
    """
    error_code = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    by_index: dict[int, tuple[int, ...]] = {}
    for index, replicas in assignment:
        if index in by_index:
            raise KafkaError(error_code, f"Found multiple manual partition assignments for partition {index}")
        _check_new_replicas(image, index, replicas, len(assignment[0][1]))
        by_index[index] = tuple(replicas)
    if sorted(by_index) != list(range(len(by_index))):
        raise KafkaError(error_code, "partitions should be a consecutive 0-based integer sequence")
    return [by_index[index] for index in range(len(by_index))]


def _check_new_replicas(image: Image, index: int, replicas: Sequence[int], factor: int) -> None:
    """Check that `replicas`, the broker ids for the new partition `index`, are valid, and that one of them is running, to lead it.

    factor: the required number of replicas. Raises KafkaError INVALID_REPLICA_ASSIGNMENT (39) if a check fails.
    """
    check_replicas(image, replicas, factor)
    if not any(map(image.is_alive, replicas)):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"All brokers specified in the manual partition assignment for partition {index} are fenced or in controlled shutdown.",
        )


def check_replicas(image: Image, replicas: Sequence[int], factor: int | None = None) -> None:
    """Check that `replicas` are ids of existing brokers: at least one, and each at most once.

    factor: the required number of replicas, None for any number. Raises KafkaError INVALID_REPLICA_ASSIGNMENT (39) if a check fails.
    """
    error_code = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    if not replicas:
        raise KafkaError(error_code, f"{_MANUAL_ASSIGNMENT_INCLUDES} an empty replica list.")
    for replica in sorted(set(replicas)):
        if replica not in image.brokers or not image.brokers[replica].registered:
            raise KafkaError(
                error_code, f"{_MANUAL_ASSIGNMENT_INCLUDES} broker {replica}, but no such broker is registered."
            )
        if replicas.count(replica) > 1:
            raise KafkaError(error_code, f"{_MANUAL_ASSIGNMENT_INCLUDES} the broker {replica} more than once.")
    if factor is not None and len(replicas) != factor:
        raise KafkaError(
            error_code,
            f"{_MANUAL_ASSIGNMENT_INCLUDES} a partition with {len(replicas)} replica(s), but this is not consistent with "
            f"previous partitions, which have {factor} replica(s).",
        )
