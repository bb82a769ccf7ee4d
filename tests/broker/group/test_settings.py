"""The settings of the group coordinator: their default values, the choice of the coordinator, and the codec of the offsets topic."""

from __future__ import annotations

import dataclasses

import pytest

from kafkaproto.broker.config.definitions import definitions_of
from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.group.placement import OFFSETS_TOPIC
from kafkaproto.broker.group.settings import GroupSettings
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaproto.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kafkaproto.records.compression import Compression


def test_default_values_of_group_settings_equal_the_broker_defaults_of_kafka_3_9() -> None:
    defaults = {name.replace(".", "_"): setting.default for name, setting in definitions_of("3.9").broker.items()}
    retention_minutes = defaults["offsets_retention_minutes"]
    assert isinstance(retention_minutes, int)
    defaults["offsets_retention_ms"] = retention_minutes * 60_000
    settings = dataclasses.asdict(GroupSettings())
    assert settings == {name: defaults[name] for name in settings}


@pytest.mark.rule("GO-17")
@pytest.mark.parametrize(
    ("new", "error"), [("false", ErrorCode.ILLEGAL_GENERATION), ("true", ErrorCode.GROUP_ID_NOT_FOUND)]
)
def test_kip_848_coordinator_answers_commit_to_unknown_group_with_group_id_not_found(
    new: str, error: ErrorCode
) -> None:
    cluster = VirtualCluster(config={"group.coordinator.new.enable": new})
    cluster.topic("t", 1, 1)
    topics = [OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(0, 1)])]
    client = cluster.connect(cluster.state.coordinator_of("g"))
    response = client.ask(OffsetCommitRequest("g", 1, "m", topics=topics), 9)
    assert response.topics[0].partitions[0].error_code == error


@pytest.mark.parametrize("codec", Compression)
def test_committed_offsets_are_compressed_with_offsets_topic_compression_codec(codec: Compression) -> None:
    cluster = VirtualCluster(
        2, config={"offsets.topic.compression.codec": codec.value, "offsets.topic.replication.factor": 2}
    )
    cluster.topic("t", 1, 1)
    topics = [
        OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(0, 7, committed_metadata="x" * 500)])
    ]
    coordinator = cluster.state.coordinator_of("g")
    response = cluster.connect(coordinator).ask(OffsetCommitRequest("g", topics=topics), 8)
    assert response.topics[0].partitions[0].error_code == 0
    index = cluster.state.nodes[coordinator].groups.ownership.partition_of("g")
    log = cluster.state.nodes[coordinator].replicas.find(OFFSETS_TOPIC, index).log
    assert {Compression(header.compression) for _, header in log.batches(0)} == {codec}
    cluster.state.stop_broker(coordinator)
    cluster.advance(1000)
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=None)])
    response = cluster.connect(cluster.state.coordinator_of("g")).ask(request, 8)
    assert response.groups[0].topics[0].partitions[0].committed_offset == 7


def test_unknown_compression_codec_of_the_offsets_topic_is_rejected_at_start() -> None:
    with pytest.raises(ConfigError, match=r"offsets\.topic\.compression\.codec"):
        VirtualCluster(config={"offsets.topic.compression.codec": 5})
