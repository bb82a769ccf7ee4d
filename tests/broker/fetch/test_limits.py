"""Fetch size limits of request, partition and broker, and the first batch, which is returned whatever its size (KIP-74).

The conformance suite tests what a single request shows: `test_fetch_sizes` and `test_small_limits`.
"""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.broker.testing.memory import MemoryClient, VirtualCluster
from kafkaproto.records.batch import records
from tests.support.scene import fill, only, topic_ids, whole_batches
from tests.support.wire import batch, batch_of_bytes, errors, fetch, flat, limit, sizes

LATEST = 17
INT_MAX = 2**31 - 1


def ask(cluster: VirtualCluster, client: MemoryClient, *partitions: tuple[str, int, int], **more: Any) -> Any:
    """Send a fetch in the latest version, or in `version`, and return the response."""
    version = more.setdefault("version", LATEST)
    return client.ask(fetch(*partitions, topic_ids=topic_ids(cluster), **more), version)


def values(response: Any) -> list[bytes | None]:
    """Return the values of all complete records of the single partition in a response."""
    data = bytes(only(response).records)
    all_values, at = [], 0
    for header in whole_batches(data):
        all_values += [record.value for record in records(data[at : at + header.size])]
        at += header.size
    return all_values


@pytest.fixture
def cluster() -> VirtualCluster:
    virtual_cluster = VirtualCluster()
    virtual_cluster.topic("t", 3)
    return virtual_cluster


# ---- versions --------------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("F-3")
@pytest.mark.parametrize("version", [0, 1, 2])
def test_fetch_before_v3_limits_bytes_of_each_partition_but_not_of_the_response(
    cluster: VirtualCluster, version: int
) -> None:
    for index in range(3):
        fill(cluster, "t", batch_of_bytes(900), partition=index)
    request = fetch(("t", 0, 0), ("t", 1, 0), ("t", 2, 0), partition_max=1000, max_bytes=1, version=version)
    request.max_bytes = INT_MAX
    response = cluster.connect().ask(request, version)
    assert errors(response) == [0, 0, 0] and min(sizes(response)) >= 900


# ---- the request's limit ---------------------------------------------------------------------------------------------------------


@pytest.mark.rule("F-4")
def test_quota_limits_the_bytes_of_a_consumer_fetch_but_not_of_a_follower_fetch() -> None:
    cluster = VirtualCluster(2)
    cluster.topic("t", 1, 2)
    for fetcher in cluster.state.nodes[1].replicas.fetchers.values():
        fetcher.cut_link(True, cluster.now_ms)
    fill(cluster, "t", *(batch_of_bytes(1000) for _ in range(20)))
    limit(cluster, client_id="reader", consumer_byte_rate=1000.0)
    client = cluster.connect(client_id="reader")
    assert sizes(client.ask(fetch(("t", 0, 0), replica_id=1), 11)) == [20_000]
    response = client.ask(fetch(("t", 0, 0), max_bytes=INT_MAX, isolation=0), 11)  # nothing is below the high watermark
    assert sizes(response) == [0]
    cluster.connect().ask(fetch(("t", 0, 20), replica_id=1), 11)
    cluster.run()
    throttled_response = cluster.connect(client_id="reader").ask(fetch(("t", 0, 0), max_bytes=INT_MAX), 11)
    assert 0 < throttled_response.throttle_time_ms < 200  # 10 s of quota, and the overhead above it; not 20 s
    assert flat(throttled_response) == []


@pytest.mark.rule("F-5")
def test_fetch_min_bytes_above_the_response_limit_is_lowered_to_the_limit(cluster: VirtualCluster) -> None:
    fill(cluster, "t", batch_of_bytes(300), batch_of_bytes(300))
    client = cluster.connect()
    limits = {"min_bytes": 100_000, "max_wait_ms": 5000}
    assert sizes(client.ask(fetch(("t", 0, 0), max_bytes=400, **limits), 11)) == [400]
    client.send(fetch(("t", 0, 0), max_bytes=700, **limits), 11)
    assert len(client.answers) == 1  # 600 of 700 requested bytes are available
    cluster.advance(5000)
    assert sizes(client.latest) == [600]


# ---- order and size over many partitions -------------------------------------------------------------------------------------------

TOPICS, PARTITIONS = 5, 6


def _full_of_small_messages() -> tuple[VirtualCluster, list[tuple[str, int]]]:
    """Kafka's FetchRequestTest.testBrokerRespectsPartitionsOrderAndSizeLimits: 30 partitions with 9 small batches each."""
    cluster = VirtualCluster(config={"fetch.max.bytes": str(INT_MAX)})
    order = [(f"topic{t}", p) for p in range(PARTITIONS) for t in range(TOPICS)]
    for t in range(TOPICS):
        cluster.topic(f"topic{t}", PARTITIONS)
    for topic, index in order:
        fill(cluster, topic, *(batch(b"value-%d" % i) for i in range(9)), partition=index)
    return cluster, order


@pytest.mark.rule("F-6", "F-8", "F-9", "F-11")
@pytest.mark.parametrize("version", [12, LATEST])
def test_fetch_reads_partitions_in_request_order_until_its_response_limit_is_reached(version: int) -> None:
    cluster, order = _full_of_small_messages()
    client = cluster.connect()
    limits: dict[str, Any] = {"max_bytes": 800, "partition_max": 190, "max_wait_ms": INT_MAX, "min_bytes": 0}

    first = ask(cluster, client, *((t, p, 0) for t, p in order), version=version, **limits)
    names = {topic_id: name for name, topic_id in topic_ids(cluster).items()}
    response_order = [
        (names.get(t.topic_id, t.topic), d.partition_index) for t in first.responses for d in t.partitions
    ]
    assert response_order == order
    assert sizes(first) == [190] * 4 + [0] * 26
    assert all((d.error_code, d.high_watermark, d.log_start_offset) == (0, 9, 0) for _, d in flat(first))

    fill(cluster, *(order[0][0], batch_of_bytes(400)), partition=order[0][1])
    fill(cluster, *(order[1][0], batch_of_bytes(900)), partition=order[1][1])
    moved = {order[0]: 9}
    second = ask(cluster, client, *((t, p, moved.get((t, p), 0)) for t, p in order), version=version, **limits)
    assert sizes(second) == [400, 190, 190] + [0] * 27
    assert base_offsets_of(second, 0) == [9]

    turned = [order[1], order[0], *order[2:]]
    third = ask(
        cluster, client, *((t, p, 9 if (t, p) == order[1] else 0) for t, p in turned), version=version, **limits
    )
    assert sizes(third) == [900] + [0] * 29

    small_first = [order[2], order[1], *order[3:]]
    fourth = ask(
        cluster, client, *((t, p, 9 if (t, p) == order[1] else 0) for t, p in small_first), version=version, **limits
    )
    assert sizes(fourth)[:2] == [190, 0]  # the large batch is not first: nothing of it


def base_offsets_of(response: Any, position: int) -> list[int]:
    return [header.base_offset for header in whole_batches(flat(response)[position][1].records)]


@pytest.mark.rule("F-9")
@pytest.mark.parametrize("size", [100, 90_000])
def test_fetch_returns_the_same_bytes_from_memory_and_from_segment_files(cluster: VirtualCluster, size: int) -> None:
    batches = [batch_of_bytes(size) for _ in range(3)]
    fill(cluster, "t", *batches)
    stored = bytes(only(cluster.connect().ask(fetch(("t", 0, 0)), 11)).records)
    assert [len(data) for data in batches] == [header.size for header in whole_batches(stored)]
    cut = bytes(only(cluster.connect().ask(fetch(("t", 0, 1), max_bytes=size + 7), 11)).records)
    assert cut == stored[size : 2 * size + 7]


# ---- throttle time ---------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("F-22")
def test_fetch_returns_empty_records_not_null_for_partitions_without_data(cluster: VirtualCluster) -> None:
    response = cluster.connect().ask(fetch(("t", 0, 0), ("missing", 0, 0), ("t", 1, 5)), 11)
    assert [data.records for _, data in flat(response)] == [b"", b"", b""]


@pytest.mark.rule("F-22")
def test_fetch_with_error_unsupported_compression_type_returns_null_records() -> None:
    cluster = VirtualCluster()
    cluster.topic("z", compression_type="zstd")
    fill(cluster, "z", batch(b"a"))
    client = cluster.connect()
    refused = only(client.ask(fetch(("z", 0, 0)), 9))
    assert (refused.error_code, refused.records, refused.high_watermark) == (76, None, -1)
    assert values(client.ask(fetch(("z", 0, 0)), 10)) == [b"a"]
    too_old = only(client.ask(fetch(("z", 0, 0), version=3), 3))
    assert (too_old.error_code, too_old.records) == (76, None)
