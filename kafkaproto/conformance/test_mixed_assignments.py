"""A test of the assignor `uniform` of the new protocol (KIP-848) in a group with a classic member."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.consumer_groups import ConsumerGroup
from kafkaproto.conformance.groups import Client
from kafkaproto.conformance.subject import Subject
from kafkaproto.coordinator_records import write_value
from kafkaproto.data.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafkaproto.error_codes import ErrorCode

PROFILE = "migration"
pytestmark = pytest.mark.needs("group.consumer.migration.policy", offsets_topic=True)


@pytest.mark.rule("GN-47")
def test_join_group_gets_unknown_server_error_if_the_assignor_fails_before_4_0(subject: Subject) -> None:
    """A classic member of a group of the new protocol joins again without one of its two topics. Before 4.0, the join fails and changes nothing."""
    group = ConsumerGroup(subject)
    six, three, two = (group.add_topic(partitions).name for partitions in (6, 3, 2))
    group.enter("B", six, three, two)
    group.enter("C", six, three)
    member = Client(group, protocols=(("range", write_value(ConsumerProtocolSubscription([three, two]), 1)),))
    assert member.enter().error_code == 0
    before = group.epochs, group.targets()
    member.protocols = (("range", write_value(ConsumerProtocolSubscription([three]), 1)),)
    reply = member.join()
    if group.is_release_4:
        assert reply.error_code == 0
    else:
        assert (reply.error_code, reply.member_id, reply.generation_id) == (ErrorCode.UNKNOWN_SERVER_ERROR, "", -1)
        assert (group.epochs, group.targets()) == before
