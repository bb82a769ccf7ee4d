"""DescribeLogDirs (key 35, versions 0-4): the log directories of a broker, and the sizes of its replicas.

v2 is flexible; v3 adds an error for the whole response; v4 adds the total and usable bytes of the volume (KIP-827).
Behaviour: a broker has one directory. Partitions without a replica on this broker and unknown topics are left out. Sizes count whole segments
(AD-41). A broker without a data directory keeps records in memory, and returns the limit of this memory in bytes as the total (AD-49).
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkaproto.api import ApiKey
from kafkaproto.broker.node import Node
from kafkaproto.broker.replication.partition import Partition
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


def _failed(exchange: Exchange, request: DescribeLogDirsRequest, error_code: int) -> Reply:
    return Reply(DescribeLogDirsResponse(error_code=int(error_code)))


@register(ApiKey.DESCRIBE_LOG_DIRS, _failed)
def describe_log_dirs(exchange: Exchange, request: DescribeLogDirsRequest) -> Reply:
    node = exchange.node
    topics: dict[str, DescribeLogDirsTopic] = {}
    for partition in _requested_partitions(node, request):
        topic = topics.setdefault(partition.topic, DescribeLogDirsTopic(partition.topic))
        topic.partitions.append(_described(partition))
    total_bytes, usable_bytes = node.replicas.stores.volume()
    result = DescribeLogDirsResult(0, node.log_dir, list(topics.values()), total_bytes, usable_bytes)
    return Reply(DescribeLogDirsResponse(results=[result]))


def _requested_partitions(node: Node, request: DescribeLogDirsRequest) -> Iterable[Partition]:
    replicas = node.replicas.partitions
    if request.topics is None:
        return replicas.values()
    names = dict.fromkeys((topic.topic, index) for topic in request.topics for index in topic.partitions)
    return [replicas[name] for name in names if name in replicas]


def _described(partition: Partition) -> DescribeLogDirsPartition:
    log = partition.log
    return DescribeLogDirsPartition(
        partition.index,
        log.size_bytes,
        max(0, log.high_watermark - log.log_end_offset),
    )
