"""The no-op records in the metadata log (KIP-835): the epoch of the features and the end of the log grow with time (AD-22, AD-25)."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaproto.broker.metadata.no_op_records import BLOCK, NoOpRecords
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.api_versions import ApiVersionsRequest
from kafkaproto.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from tests.support.broker.processes import Processes

pytestmark = pytest.mark.rule("AD-22", "AD-25")
INTERVAL = "metadata.max.idle.interval.ms"


def offsets(cluster: VirtualCluster) -> tuple[int, int]:
    """Return (epoch of the features, high watermark of the metadata log), as broker 0 reports them."""
    peer = cluster.connect(0)
    versions = peer.ask(ApiVersionsRequest("a-client", "1.0"), 4)
    quorum = DescribeQuorumRequestTopicData("__cluster_metadata", [DescribeQuorumRequestPartitionData(0)])
    [topic] = peer.ask(DescribeQuorumRequest([quorum]), 1).topics
    return versions.finalized_features_epoch, topic.partitions[0].high_watermark


@pytest.mark.parametrize("release", ["3.9", "4.2"])
@pytest.mark.parametrize(
    ("profile", "config", "records"),
    [
        ("kafka", {}, 12),
        ("kafka", {INTERVAL: "2000"}, 3),
        ("kafka", {INTERVAL: "0"}, 0),
        ("test", {}, 0),
        ("test", {INTERVAL: "500"}, 12),
    ],
)
def test_feature_epoch_grows_by_one_in_each_interval_of_no_op_records(
    release: str, profile: str, config: dict[str, str], records: int
) -> None:
    """Kafka 3.9.1 and 4.2.0 also wrote 12 records in 6 seconds with their default, 500 ms. records: the expected number in 6 seconds."""
    cluster = VirtualCluster(1, config, profile=profile, release_name=release)
    epoch, end = offsets(cluster)
    cluster.advance(6_000)
    assert offsets(cluster) == (epoch + records, end + records)
    cluster.topic("t")
    assert offsets(cluster) == (epoch + records + 1, end + records + 1)


def test_kafka_3_2_has_no_no_op_records_in_the_metadata_log() -> None:
    cluster = VirtualCluster(1, profile="kafka", release_name="3.2")
    cluster.advance(6_000)
    assert cluster.state.controller.no_op_records.count == 0


def test_count_of_no_op_records_continues_if_the_clock_is_set_back() -> None:
    now_ms = 0
    records = NoOpRecords(500, lambda: now_ms)
    now_ms = 60_000
    assert records.count == 120
    now_ms = 10_000
    assert records.count == 120
    now_ms = 15_000
    assert records.count == 130


def test_no_op_records_are_persisted_in_blocks_before_they_count() -> None:
    now_ms = 0
    persisted: list[int] = []
    records = NoOpRecords(500, lambda: now_ms, persisted.append)
    now_ms = 500
    assert (records.count, persisted) == (1, [1 + BLOCK])
    now_ms = 500 * (1 + BLOCK)
    assert (records.count, persisted) == (1 + BLOCK, [1 + BLOCK])
    now_ms += 500
    assert (records.count, persisted) == (2 + BLOCK, [1 + BLOCK, 2 + 2 * BLOCK])


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("interval_ms", ["500", "5000", "0"])
def test_epoch_exceeds_all_no_op_records_of_the_previous_process_after_a_restart(
    tmp_path: Path, clean: bool, interval_ms: str
) -> None:
    """The first process counts a record in each half second. The clock of the second begins where that of the first began.

    interval_ms: the setting of the second process.
    """
    processes = Processes(tmp_path, config={INTERVAL: "500"})
    epoch = offsets(processes.cluster)[0]
    processes.cluster.advance(24 * 3_600_000)
    assert offsets(processes.cluster)[0] == epoch + 172_800
    processes.cluster.topic("t")
    if clean:
        processes.end()
    else:
        processes.crash()
    after = Processes(tmp_path, config={INTERVAL: interval_ms})
    assert offsets(after.cluster)[0] > epoch + 172_801
