"""Tests of offsets that a producer commits in a transaction for a consumer group of the new protocol (KIP-848)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafkaproto.conformance.consumer_groups import LEAVE_EPOCH, ConsumerGroup
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.transactions import Producer, bumps_epochs

PROFILE = "consumer"
pytestmark = pytest.mark.needs(offsets_topic=True)

ILLEGAL_GENERATION, UNKNOWN_MEMBER = 22, 25


def begun_for(group: ConsumerGroup) -> tuple[Producer, Callable[..., int]]:
    """Return a producer that has added the group to a transaction, and a function that commits an offset in this transaction.

    The function takes the version of TxnOffsetCommit and further fields of the request, such as the member id. It returns the error code.
    """
    producer, topic = Producer(group.subject), group.topic.name
    producer.init()
    assert producer.add_offsets(group) == 0

    def commit(version: int, **fields: Any) -> int:
        return producer.commit_offsets(group, {(topic, 0): 7}, version=version, **fields)[(topic, 0)]

    return producer, commit


@pytest.mark.rule("TX-42")
def test_offset_commit_in_a_transaction_needs_the_current_member_epoch(subject: Subject) -> None:
    group = ConsumerGroup(subject)
    epoch, _ = group.enter("A")
    producer, commit = begun_for(group)
    for version in (3, 4, 5) if bumps_epochs(subject) else (3, 4):
        for other_epoch in (epoch - 1, epoch + 1, -1):
            assert commit(version, member_id="A", generation_id=other_epoch) == ILLEGAL_GENERATION
        for member_id, member_epoch in (("nobody", epoch), ("nobody", -1), ("", epoch), ("", -2)):
            assert commit(version, member_id=member_id, generation_id=member_epoch) == UNKNOWN_MEMBER
        assert commit(version, member_id="A", generation_id=epoch) == 0
        assert commit(version, member_id="A", generation_id=epoch, group_instance_id="unknown") == 0
        assert commit(version, group_instance_id="unknown") == UNKNOWN_MEMBER
    producer.finish(commit=True)
    assert group.committed() == {(group.topic.name, 0): 7}


@pytest.mark.rule("TX-42")
def test_kip_848_group_accepts_a_txn_offset_commit_without_member_id_from_4_0_on(subject: Subject) -> None:
    group = ConsumerGroup(subject)
    group.enter("A")
    producer, commit = begun_for(group)
    for version in range(5):
        assert commit(version) == (0 if bumps_epochs(subject) else UNKNOWN_MEMBER)
    producer.finish(commit=False)


@pytest.mark.rule("TX-42")
def test_empty_kip_848_group_accepts_transactional_commits_with_a_negative_epoch(subject: Subject) -> None:
    group = ConsumerGroup(subject)
    group.enter("A")
    assert group.beat("A", LEAVE_EPOCH)[0] == LEAVE_EPOCH
    producer, commit = begun_for(group)
    for version in range(3):
        assert commit(version) == 0
    for member_id in ("", "A", "nobody"):
        for instance in (None, "unknown"):
            assert commit(3, member_id=member_id, generation_id=-1, group_instance_id=instance) == 0
        assert commit(3, member_id=member_id, generation_id=-2) == 0
        assert commit(3, member_id=member_id, generation_id=1) == UNKNOWN_MEMBER
    producer.finish(commit=True)
    assert group.committed() == {(group.topic.name, 0): 7}
