"""Helpers for internal topics in conformance tests: read the records of a partition, reassign partition 0, and set a topic setting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kafkaproto.api import ApiKey
from kafkaproto.conformance.scene import APPEND_WITHIN_MS, Topic, wait_until
from kafkaproto.conformance.wire import FETCH_VERSION, fetch, flat
from kafkaproto.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kafkaproto.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkaproto.records.entries import entries
from kafkaproto.records.record import Record

LATEST_FETCH = 12
"""The last Fetch version without topic ids."""
TOPIC, SET, DELETE = 2, 0, 1
APPLIED_MS = 500
"""The time in ms after which every broker certainly applies a changed topic setting."""


def read_to_the_end(topic: Topic, index: int, offset: int = 0) -> Iterator[Record]:
    """Yield the records of partition `index` from an offset to the high watermark, with as many fetches as necessary."""
    subject = topic.subject
    version = min(subject.version(ApiKey.FETCH, FETCH_VERSION), LATEST_FETCH)
    while True:
        begin = offset
        request = fetch((topic.name, index, offset), version=version)
        [(_, data)] = flat(subject.ask_once(request, version, topic.leader(index)))
        assert data.error_code == 0
        for record in entries(data.records or b""):
            offset = record.offset + 1
            yield record
        if offset >= data.high_watermark:
            return
        assert offset > begin, f"no records at {begin} below the high watermark {data.high_watermark}"


def reassign(topic: Topic, *replicas: int) -> None:
    """Give the first partition of a topic these replicas, and wait until they are in sync."""
    order = [ReassignableTopic(topic.name, [ReassignablePartition(0, list(replicas))])]
    request = AlterPartitionReassignmentsRequest(APPEND_WITHIN_MS, topics=order)
    assert topic.subject.ask_once(request, 0).responses[0].partitions[0].error_code == 0

    def is_done() -> bool:
        partition = topic.partition()
        return partition.replica_nodes == list(replicas) and set(partition.isr_nodes) == set(replicas)

    wait_until(topic.subject, is_done, f"the replicas of {topic.name}-0 are {replicas}, all in sync")


@contextmanager
def topic_setting(topic: Topic, name: str, value: str) -> Iterator[None]:
    """Return a context in which the topic setting `name` has this value. At the end of the context, the setting is deleted."""

    def alter(operation: int, text: str | None) -> None:
        resource = AlterConfigsResource(TOPIC, topic.name, [AlterableConfig(name, operation, text)])
        [response] = topic.subject.ask_once(IncrementalAlterConfigsRequest([resource]), 1).responses
        assert response.error_code == 0, response
        topic.subject.pass_ms(APPLIED_MS)

    alter(SET, value)
    try:
        yield
    finally:
        alter(DELETE, None)
