"""Property test of fetches over many partitions, compared with a simple implementation of the rules F-6 to F-15."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaproto.broker.testing.memory import VirtualCluster
from tests.support.scene import fill, hold, replica, topic_ids
from tests.support.wire import batch_of_bytes, fetch, flat

SIZES = (80, 100, 333, 1200)
BATCHES = {size: batch_of_bytes(size) for size in SIZES}
SEGMENT_BYTES = 2000


@dataclass
class Log:
    """A partition: the size of each batch of one record, and the number of committed batches."""

    sizes: list[int]
    committed: int

    def readable(self, offset: int, bound: int) -> list[int]:
        """Return the sizes of the batches from an offset to the bound, up to the end of their segment (F-14)."""
        segment_of, segment, used = [], 0, 0
        for size in self.sizes:
            if used and used + size > SEGMENT_BYTES:
                segment, used = segment + 1, 0
            used += size
            segment_of.append(segment)
        return [self.sizes[i] for i in range(offset, bound) if segment_of[i] == segment_of[offset]]


@st.composite
def logs(draw: st.DrawFn) -> list[Log]:
    partition_logs = []
    for _ in range(draw(st.integers(1, 4))):
        sizes = draw(st.lists(st.sampled_from(SIZES), max_size=8))
        partition_logs.append(Log(sizes, draw(st.integers(0, len(sizes)))))
    return partition_logs


LIMITS = st.one_of(st.sampled_from([0, 1, 79, 80, 100, 180, 333]), st.integers(0, 5000))


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Log], list[tuple[int, int, int]], int, bool]:
    """Draw (logs, [(partition, offset, partition limit)], request limit, whether a follower fetches)."""
    partition_logs = draw(logs())
    from_follower = draw(st.booleans())
    requests = []
    for index in draw(st.permutations(range(len(partition_logs)))):
        bound = len(partition_logs[index].sizes) if from_follower else partition_logs[index].committed
        requests.append((index, draw(st.integers(0, bound)), draw(LIMITS)))
    return partition_logs, requests, draw(LIMITS), from_follower


def expected(
    partition_logs: list[Log], requests: list[tuple[int, int, int]], max_bytes: int, from_follower: bool
) -> list[int]:
    remaining, privileged, sizes = max_bytes, True, []
    for index, offset, partition_max in requests:
        log = partition_logs[index]
        batches = log.readable(offset, len(log.sizes) if from_follower else log.committed)
        limit = min(partition_max, remaining)
        if not batches:
            size = 0
        elif limit < batches[0]:
            size = batches[0] if privileged else 0
        else:
            size = min(limit, sum(batches))
        if size:
            privileged, remaining = False, max(0, remaining - size)
        sizes.append(size)
    return sizes


def filled(partition_logs: list[Log]) -> VirtualCluster:
    """Return a cluster with these logs; broker 1 replicates each partition up to its committed records."""
    cluster = VirtualCluster(2)
    controller = cluster.state.controller
    assignment = dict.fromkeys(range(len(partition_logs)), (0, 1))
    configs = {"segment.bytes": str(SEGMENT_BYTES)}
    controller.put_topic(controller.plan_topic("t", assignment=assignment, configs=configs))
    cluster.run()
    for index, log in enumerate(partition_logs):
        hold(cluster, 1, index=index, at=log.committed)
        fill(cluster, "t", *(BATCHES[size] for size in log.sizes), partition=index)
        assert replica(cluster, 0, index=index).log.high_watermark == log.committed
    return cluster


@pytest.mark.rule("X-3", "X-4", "F-6", "F-7", "F-8", "F-10", "F-15")
@given(cases(), st.sampled_from([4, 11, 17]))
@settings(max_examples=400, deadline=None)
def test_random_fetches_return_the_stored_bytes_within_partition_and_response_limits(case: Any, version: int) -> None:
    partition_logs, requests, max_bytes, from_follower = case
    cluster = filled(partition_logs)
    stored = [replica(cluster, 0, index=index).log.read_all() for index in range(len(partition_logs))]
    request = fetch(
        *(("t", index, offset) for index, offset, _ in requests),
        max_bytes=max_bytes,
        replica_id=1 if from_follower else -1,
        version=version,
        topic_ids=topic_ids(cluster),
    )
    for topic, (_, _, partition_max) in zip(request.topics, requests, strict=True):
        topic.partitions[0].partition_max_bytes = partition_max
    response = flat(cluster.connect().ask(request, version))

    assert [(data.partition_index, data.error_code) for _, data in response] == [(index, 0) for index, _, _ in requests]
    sizes = [len(data.records) for _, data in response]
    assert sizes == expected(partition_logs, requests, max_bytes, from_follower)

    first = next((size for size in sizes if size), 0)
    assert sum(sizes) <= max(max_bytes, first)
    for (index, offset, partition_max), (_, data) in zip(requests, response, strict=True):
        start = sum(partition_logs[index].sizes[:offset])
        assert bytes(data.records) == stored[index][start : start + len(data.records)]
        assert len(data.records) <= max(partition_max, first)
