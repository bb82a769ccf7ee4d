"""Structs inside structs: made when somebody looks at them, each object's own, and nobody can tell."""

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


def test_a_struct_that_was_not_sent_is_its_default_and_the_same_every_time() -> None:
    one, _ = decoded_partitions()
    assert one.current_leader == LeaderIdAndEpoch() and one.diverging_epoch == EpochEndOffset()
    assert one.current_leader is one.current_leader


def test_changing_a_default_struct_changes_one_object_only_and_is_sent() -> None:
    one, other = decoded_partitions()
    one.current_leader.leader_id = 7
    assert (one.current_leader.leader_id, other.current_leader.leader_id) == (7, -1)
    response = FetchResponse(responses=[FetchableTopicResponse("t", partitions=[one, other])])
    again = FETCH_RESPONSE_V12.decode(FETCH_RESPONSE_V12.encode(response)).responses[0].partitions
    assert [partition.current_leader.leader_id for partition in again] == [7, -1]


def test_looking_changes_no_byte() -> None:
    one, _ = decoded_partitions()
    unseen = FetchResponse(responses=[FetchableTopicResponse("t", partitions=[one])])
    before = FETCH_RESPONSE_V12.encode(unseen)
    assert repr(one) and one == PartitionData(0)
    assert FETCH_RESPONSE_V12.encode(unseen) == before == FETCH_RESPONSE_V12.build(unseen)


def test_decoded_objects_can_be_copied_replaced_and_pickled_like_any_dataclass() -> None:
    one, _ = decoded_partitions()
    one.snapshot_id.epoch = 3
    for again in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one)), dataclasses.replace(one)):
        assert again == one and again.snapshot_id.epoch == 3
    assert dataclasses.asdict(one)["diverging_epoch"]["epoch"] == -1


@pytest.mark.parametrize("name", ["diverging_epoch", "current_leader", "snapshot_id"])
def test_none_is_no_struct(name: str) -> None:
    partition = PartitionData()
    setattr(partition, name, None)
    response = FetchResponse(responses=[FetchableTopicResponse("t", partitions=[partition])])
    for encode in (FETCH_RESPONSE_V12.encode, FETCH_RESPONSE_V12.build):
        with pytest.raises(EncodeError, match=name):
            encode(response)


@dataclasses.dataclass(slots=True, eq=False, repr=False)
class PartitionAndNote(PartitionData):
    """What somebody derives to keep something beside a message."""

    note: str = ""


def test_a_derived_dataclass_is_equal_and_shown_by_all_its_fields() -> None:
    assert PartitionAndNote(1, note="a") == PartitionAndNote(1, note="a")
    assert PartitionAndNote(1) != PartitionAndNote(2) and PartitionAndNote(note="a") != PartitionAndNote(note="b")
    assert repr(PartitionAndNote(7, note="a")) == "PartitionAndNote(partition_index=7, note='a')"
    assert PartitionAndNote().current_leader == LeaderIdAndEpoch()
