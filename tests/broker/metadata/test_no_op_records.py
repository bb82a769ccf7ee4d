"""The no-op records in the metadata log (KIP-835): the epoch of the features and the end of the log grow with time (AD-22, AD-25)."""

from __future__ import annotations

from pathlib import Path

import pytest

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
    """A real 3.9.1 and 4.2.0 also counted 12 records within 6 seconds with their default, 500 ms."""
    cluster = VirtualCluster(1, config, profile=profile, release_name=release)
    epoch, end = offsets(cluster)
    cluster.advance(6_000)
    assert offsets(cluster) == (epoch + records, end + records)
    cluster.topic("t")
    assert offsets(cluster) == (epoch + records + 1, end + records + 1)


def test_release_before_the_setting_has_no_no_op_records() -> None:
    cluster = VirtualCluster(1, profile="kafka", release_name="3.2")
    cluster.advance(6_000)
    assert cluster.state.controller.no_op_records.count == 0


def test_feature_epoch_does_not_fall_if_a_test_sets_the_clock_back() -> None:
    cluster = VirtualCluster(1, {INTERVAL: "500"})
    cluster.advance(60_000)
    records = cluster.state.controller.no_op_records
    assert records.count == 120
    records._now_ms = lambda: records.since_ms
    assert records.count == 120


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("interval_ms", ["500", "5000", "0"])
def test_restart_counts_all_no_op_records_of_the_previous_process(
    tmp_path: Path, clean: bool, interval_ms: str
) -> None:
    """The first process counts a record in each half second. interval_ms: the setting of the second process."""
    processes = Processes(tmp_path, config={INTERVAL: "500"})
    epoch = offsets(processes.cluster)[0]
    processes.cluster.advance(60_250)
    assert offsets(processes.cluster)[0] == epoch + 120
    clock = processes.cluster.clock
    if clean:
        processes.end()
    else:
        processes.crash()
    after = Processes(tmp_path, config={INTERVAL: interval_ms}, clock=clock)
    assert offsets(after.cluster)[0] > epoch + 120
