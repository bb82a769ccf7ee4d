"""Data directories that commit 7c3b0af wrote: the broker recovers their contents and can write to them again."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.init_producer_id import InitProducerIdRequest
from tests.artifacts.holding import LATER_MS, ask, contents, expected, recovered, unpack
from tests.golden.batches import batch, values
from tests.golden.world import commit, produce

NAMES = ("data-clean", "data-killed")
PRODUCER_ID = 0
"""The producer id of the idempotent batches at the end of `events`, partition 0: sequences 0 to 5."""


def write(cluster: VirtualCluster, topic: str, data: bytes, index: int = 0) -> tuple[int, int]:
    """Produce a batch and return (error code, base offset)."""
    leader, _ = cluster.state.controller.image.leader_of(topic, index)
    [answer] = ask(cluster, leader, produce(topic, data, index, acks=-1), 9).responses[0].partition_responses
    return answer.error_code, answer.base_offset


@pytest.mark.parametrize("name", NAMES)
def test_broker_recovers_all_data_from_a_data_directory_of_an_older_version(name: str, tmp_path: Path) -> None:
    cluster = recovered(unpack(name, tmp_path))
    recovered_topics = contents(cluster)
    cluster.state.close()
    for topic, facts in expected(name)["topics"].items():
        assert recovered_topics["topics"][topic] == facts, topic
    assert recovered_topics == expected(name)


@pytest.mark.parametrize("name", NAMES)
def test_records_added_to_a_data_directory_of_an_older_version_survive_a_restart(name: str, tmp_path: Path) -> None:
    cluster = recovered(unpack(name, tmp_path))
    expected_contents = expected(name)
    for topic, index in (("events", 0), ("events", 1), ("table", 0), ("trimmed", 0)):
        end = expected_contents["topics"][topic]["partitions"][str(index)]["high_watermark"]
        assert write(cluster, topic, batch(b"new", keys=True), index) == (0, end)
    coordinator = cluster.state.coordinator_of("committed")
    assert not ask(cluster, coordinator, commit("committed", ("table", 0, 5)), 8).topics[0].partitions[0].error_code
    before = contents(cluster)
    cluster.state.close()
    again = recovered(tmp_path, LATER_MS + 60_000)
    assert contents(again) == before
    again.state.close()
    assert ["table", 0, 5, "at 5"] in before["groups"]["committed"]
    records = before["topics"]["events"]["partitions"]["0"]["records"]
    assert (
        records[:-1] == expected_contents["topics"]["events"]["partitions"]["0"]["records"] and records[-1][3] == "new"
    )


@pytest.mark.parametrize("name", NAMES)
def test_producer_sequence_numbers_continue_in_a_data_directory_of_an_older_version(name: str, tmp_path: Path) -> None:
    cluster = recovered(unpack(name, tmp_path))
    end = expected(name)["topics"]["events"]["partitions"]["0"]["high_watermark"]

    def sequence(first: int) -> tuple[int, int]:
        data = batch(*values(2), producer_id=PRODUCER_ID, producer_epoch=0, base_sequence=first)
        return write(cluster, "events", data)

    assert sequence(4) == (0, end - 2)  # a duplicate
    assert sequence(9)[0] == 45  # OUT_OF_ORDER_SEQUENCE_NUMBER
    assert sequence(6) == (0, end)
    assert ask(cluster, 0, InitProducerIdRequest(None, 1000), 4).producer_id > PRODUCER_ID
    cluster.state.close()
