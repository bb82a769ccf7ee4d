"""AlterReplicaLogDirs (key 34, versions 0-2): move a replica to another log directory of its broker (KIP-113).

v2 is flexible.
Behaviour: a broker has one directory. A move to that directory succeeds, a move to any other gets error LOG_DIR_NOT_FOUND (57). A partition without a
replica on this broker gets error REPLICA_NOT_AVAILABLE (9), so that kafka-reassign-partitions retries; an unknown partition gets error
UNKNOWN_TOPIC_OR_PARTITION (3). Kafka copies a moved replica into a directory `<topic>-<partition>.<32 digits>-future`; if this name would have more
than 255 characters, the partition gets error INVALID_TOPIC_EXCEPTION (17, AD-50). If a request names several directories for one partition, only the
last of them counts (AD-48).
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)

MAX_DIRECTORY_NAME_LENGTH = 255
COPY_SUFFIX_LENGTH = 40
"""The length of `.<32 digits>-future`: Kafka copies a moved replica into a directory whose name has this ending."""


def _failed(exchange: Exchange, request: AlterReplicaLogDirsRequest, error_code: int) -> Reply:
    results = [
        AlterReplicaLogDirTopicResult(
            topic.name, [AlterReplicaLogDirPartitionResult(i, int(error_code)) for i in topic.partitions]
        )
        for directory in request.dirs
        for topic in directory.topics
    ]
    return Reply(AlterReplicaLogDirsResponse(results=results))


@register(ApiKey.ALTER_REPLICA_LOG_DIRS, _failed)
def alter_replica_log_dirs(exchange: Exchange, request: AlterReplicaLogDirsRequest) -> Reply:
    paths = {
        (topic.name, index): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for index in topic.partitions
    }
    results: dict[str, AlterReplicaLogDirTopicResult] = {}
    for (topic, index), path in paths.items():
        result = AlterReplicaLogDirPartitionResult(index, int(_error(exchange, path, topic, index)))
        results.setdefault(topic, AlterReplicaLogDirTopicResult(topic)).partitions.append(result)
    return Reply(AlterReplicaLogDirsResponse(results=list(results.values())))


def _error(exchange: Exchange, path: str, topic: str, index: int) -> ErrorCode:
    node = exchange.node
    if len(f"{topic}-{index}") + COPY_SUFFIX_LENGTH > MAX_DIRECTORY_NAME_LENGTH:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if path != node.log_dir:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if node.replicas.find(topic, index) is not None:
        return ErrorCode.NONE
    unknown = node.image.partition(topic, index) is None
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if unknown else ErrorCode.REPLICA_NOT_AVAILABLE
