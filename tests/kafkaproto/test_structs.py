"""Nested structs: created on first use, separate per object, and invisible in the encoding."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import pytest

from kafkaproto.errors import EncodeError
from kafkaproto.messages.fetch import (
    FETCH_RESPONSE_V12,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)


def decoded_partitions() -> list[PartitionData]:
    topic = FetchableTopicResponse("t", partitions=[PartitionData(0), PartitionData(1)])
    data = FETCH_RESPONSE_V12.encode(FetchResponse(responses=[topic]))
    return FETCH_RESPONSE_V12.decode(data).responses[0].partitions


def test_reading_an_absent_nested_struct_twice_returns_the_same_default_object() -> None:
    partition, _ = decoded_partitions()
    assert partition.current_leader == LeaderIdAndEpoch() and partition.diverging_epoch == EpochEndOffset()
    assert partition.current_leader is partition.current_leader


def test_setting_current_leader_of_a_decoded_partition_changes_no_other_partition() -> None:
    first, other = decoded_partitions()
    first.current_leader.leader_id = 7
    assert (first.current_leader.leader_id, other.current_leader.leader_id) == (7, -1)
    response = FetchResponse(responses=[FetchableTopicResponse("t", partitions=[first, other])])
    again = FETCH_RESPONSE_V12.decode(FETCH_RESPONSE_V12.encode(response)).responses[0].partitions
    assert [partition.current_leader.leader_id for partition in again] == [7, -1]


def test_repr_and_comparison_of_a_decoded_partition_do_not_change_its_encoding() -> None:
    partition, _ = decoded_partitions()
    unseen = FetchResponse(responses=[FetchableTopicResponse("t", partitions=[partition])])
    before = FETCH_RESPONSE_V12.encode(unseen)
    assert repr(partition) and partition == PartitionData(0)
    assert FETCH_RESPONSE_V12.encode(unseen) == before == FETCH_RESPONSE_V12.build(unseen)


def test_decoded_messages_can_be_copied_pickled_and_used_with_dataclasses_replace() -> None:
    partition, _ = decoded_partitions()
    partition.snapshot_id.epoch = 3
    for again in (
        copy.copy(partition),
        copy.deepcopy(partition),
        pickle.loads(pickle.dumps(partition)),
        dataclasses.replace(partition),
    ):
        assert again == partition and again.snapshot_id.epoch == 3
    assert dataclasses.asdict(partition)["diverging_epoch"]["epoch"] == -1


@pytest.mark.parametrize("name", ["diverging_epoch", "current_leader", "snapshot_id"])
def test_none_instead_of_a_nested_struct_is_rejected(name: str) -> None:
    partition = PartitionData()
    setattr(partition, name, None)
    response = FetchResponse(responses=[FetchableTopicResponse("t", partitions=[partition])])
    for encode in (FETCH_RESPONSE_V12.encode, FETCH_RESPONSE_V12.build):
        with pytest.raises(EncodeError, match=name):
            encode(response)


@dataclasses.dataclass(slots=True, eq=False, repr=False)
class PartitionAndNote(PartitionData):
    """A subclass of a struct that adds an attribute of the user."""

    note: str = ""


def test_comparison_and_repr_of_a_message_subclass_include_its_additional_fields() -> None:
    assert PartitionAndNote(1, note="a") == PartitionAndNote(1, note="a")
    assert PartitionAndNote(1) != PartitionAndNote(2) and PartitionAndNote(note="a") != PartitionAndNote(note="b")
    assert repr(PartitionAndNote(7, note="a")) == "PartitionAndNote(partition_index=7, note='a')"
    assert PartitionAndNote().current_leader == LeaderIdAndEpoch()
