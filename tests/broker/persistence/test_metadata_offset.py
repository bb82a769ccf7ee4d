"""The offset of the metadata log grows over restarts from a data directory: clients ignore finalized features of an older epoch (KIP-584)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkaproto.broker.persistence.wal import WriteAheadLog
from kafkaproto.broker.requests.features import finalize
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.api_versions import ApiVersionsRequest
from tests.support.broker.processes import Processes

pytestmark = pytest.mark.rule("AD-22", "AD-25")


def epoch(cluster: VirtualCluster) -> int:
    """Return the epoch of the finalized features, as broker 0 reports it."""
    return int(cluster.connect(0).ask(ApiVersionsRequest("a-client", "1.0"), 4).finalized_features_epoch)


def restarted_epoch(processes: Processes, *, clean: bool) -> int:
    if clean:
        processes.end()
        return epoch(processes.restart())
    return epoch(processes.crash_and_restart())


def changed_topics(cluster: VirtualCluster) -> None:
    cluster.topic("t", 2)
    cluster.state.controller.delete_topic("t")


def changed_brokers(cluster: VirtualCluster) -> None:
    for _ in range(3):
        cluster.state.stop_broker(1)
        cluster.state.start_broker(1)


def changed_features(cluster: VirtualCluster) -> None:
    levels = dict(cluster.state.controller.image.features)
    finalize(cluster.state, {name: level for name, level in levels.items() if name != "group.version"})


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("change", [changed_topics, changed_brokers, changed_features])
def test_epoch_of_finalized_features_grows_with_each_restart(tmp_path: Path, change: Any, clean: bool) -> None:
    processes = Processes(tmp_path, brokers=2, release_name="4.2")
    epochs = [epoch(processes.cluster)]
    for _ in range(2):
        change(processes.cluster)
        epochs.append(epoch(processes.cluster))
        epochs.append(restarted_epoch(processes, clean=clean))
    assert epochs == sorted(set(epochs))


def test_feature_epoch_exceeds_metadata_record_count_if_the_data_dir_has_no_offset(tmp_path: Path) -> None:
    processes = Processes(tmp_path, release_name="4.2")
    for number in range(20):
        processes.cluster.topic(f"t{number}")
    processes.end()
    log = WriteAheadLog(tmp_path / "facts")
    old_records = [{k: v for k, v in r.items() if k != "offset"} for r in log.records if r["kind"] != "offset"]
    log.replace(old_records)
    log.close()
    assert len(old_records) >= 20
    assert epoch(processes.restart()) > len(old_records)
    assert [topic.name for topic in processes.cluster.state.controller.image.topics.values()] == [
        f"t{number}" for number in range(20)
    ]
