"""Consumer groups of the new protocol (KIP-848) in conformance tests: sends the heartbeats of members, and reads the state of the group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.conformance.groups import Group
from kafkaproto.conformance.scene import Topic, new_topic, wait_until
from kafkaproto.conformance.served import release_of
from kafkaproto.conformance.subject import Subject
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.api_versions import ApiVersionsRequest
from kafkaproto.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kafkaproto.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from kafkaproto.messages.delete_groups import DeleteGroupsRequest
from kafkaproto.releases import Ranges, releases

PARTITIONS = 6
ALL = list(range(PARTITIONS))
TIMEOUT_MS = 60_000
INVALID_EPOCH = -3
"""A member epoch that every broker rejects, so that a heartbeat with it changes nothing."""
LEAVE_EPOCH = -1
"""The member epoch with which a member leaves its group."""
REGEX_VERSION = 1
"""The first version of ConsumerGroupHeartbeat with a field for a regular expression; Kafka 4 and later support it.

From this version on, the client creates the member id (KIP-1082).
"""
Owned = Sequence[int] | Mapping[str, Sequence[int]]
"""The partitions that a member owns: partition numbers of the topic `ConsumerGroup.topic`, or a mapping of topic names to partition numbers."""


def served_ranges(subject: Subject) -> Ranges:
    """Return the API versions that the cluster under test offers. Skips the current test if ConsumerGroupHeartbeat is not among them."""
    response = subject.ask_once(ApiVersionsRequest(), 0)
    ranges = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
    if ApiKey.CONSUMER_GROUP_HEARTBEAT not in ranges:
        pytest.skip("not prepared: needs ConsumerGroupHeartbeat v0 (the broker does not serve this API)")
    return ranges


class ConsumerGroup(Group):
    """A group of the new protocol, and a topic of six partitions for its members. All heartbeats go over one connection.

    index: the partition of the offsets topic that the group must be in; None for any.
    """

    def __init__(self, subject: Subject, index: int | None = None) -> None:
        self._ranges = served_ranges(subject)
        self.version = min(self._ranges[ApiKey.CONSUMER_GROUP_HEARTBEAT][1], REGEX_VERSION)
        self._ids: dict[str, bytes] = {}
        super().__init__(subject, index)
        self.connection = self.connect()
        if self.heartbeat("nobody", INVALID_EPOCH).error_code == ErrorCode.UNSUPPORTED_VERSION:
            pytest.skip("not prepared: needs consumer in group.coordinator.rebalance.protocols (is without consumer)")
        self.topic = self.add_topic()

    @property
    def is_release_4(self) -> bool:
        """Return whether the broker is of Kafka 4 or later."""
        return self._ranges[ApiKey.CONSUMER_GROUP_HEARTBEAT][1] >= REGEX_VERSION

    @property
    def is_release_4_2(self) -> bool:
        """Return whether the broker is of release 4.2 or later, as the API versions that it offers show."""
        release = release_of(self._ranges)
        return self.is_release_4 and release is not None and releases().index(release) >= releases().index("4.2")

    @property
    def stores_topics(self) -> bool:
        """Return whether the records of a group contain its topics. True before Kafka 4.1; later releases store a hash of the topics instead."""
        release = release_of(self._ranges)
        return not self.is_release_4 or (release is not None and releases().index(release) < releases().index("4.1"))

    def add_topic(
        self, partitions: int = PARTITIONS, name: str | None = None, assignment: dict[int, list[int]] | None = None
    ) -> Topic:
        """Create a topic whose partitions members can own, and wait until the coordinator knows it.

        name: by default a new one. assignment: maps each partition to broker ids, the leader first. By default, each partition has one replica, on
        broker 0.
        """
        topic = new_topic(self.subject, partitions, assignment=assignment, name=name)
        self._ids[topic.name] = topic.topic_id
        self._wait_until_assigned(topic.name)
        return topic

    def _wait_until_assigned(self, topic: str) -> None:
        """Wait until the coordinator of this group knows the new topic `topic`.

        A Kafka broker can list a new topic in Metadata before its group coordinator knows the topic. Each partition of the offsets topic has its own
        coordinator, which is informed separately. So this method creates another group in the same partition of the offsets topic, waits until a
        member of that group gets partitions of the new topic, and deletes the group.
        """
        other = Group(self.subject, self.index).id

        def is_assigned() -> bool:
            response = self.heartbeat("A", 0, {}, [topic], TIMEOUT_MS, group_id=other)
            assert response.error_code == 0, response
            return bool(response.assignment.topic_partitions)

        wait_until(self.subject, is_assigned, f"the group coordinator assigns partitions of topic {topic}")
        assert self.heartbeat("A", LEAVE_EPOCH, group_id=other).error_code == 0
        # The check for expired offsets may already have deleted it.
        assert self.ask(DeleteGroupsRequest([other]), 2).results[0].error_code in (0, ErrorCode.GROUP_ID_NOT_FOUND)

    def heartbeat(
        self,
        member_id: str,
        epoch: int,
        owned: Owned | None = None,
        names: Sequence[str] | None = None,
        timeout_ms: int = -1,
        **fields: Any,
    ) -> Any:
        """Send a heartbeat and return the response.

        epoch: the member epoch in the request. owned: the partitions that the member owns; None if unchanged. names: the topics that the member
        subscribes to; None if unchanged. timeout_ms: the member's rebalance timeout; -1 if unchanged. fields: further fields of the request.
        """
        request = ConsumerGroupHeartbeatRequest(
            self.id,
            member_id,
            epoch,
            rebalance_timeout_ms=timeout_ms,
            subscribed_topic_names=None if names is None else list(names),
            topic_partitions=None if owned is None else self._places(owned),
        )
        for name, value in fields.items():
            setattr(request, name, value)
        return self.subject.ask(self.connection, request, self.version)

    def join(self, member_id: str, *names: str, timeout_ms: int = TIMEOUT_MS, **fields: Any) -> Any:
        """Send the first heartbeat of a member, and return the response.

        names: the topics that the member subscribes to, by default the group's topic. timeout_ms: the member's rebalance timeout. fields: further
        fields of the request.
        """
        return self.heartbeat(member_id, 0, [], names or [self.topic.name], timeout_ms, **fields)

    def _places(self, owned: Owned) -> list[ConsumerGroupHeartbeatRequestTopicPartitions]:
        by_topic = owned if isinstance(owned, Mapping) else {self.topic.name: owned}
        return [
            ConsumerGroupHeartbeatRequestTopicPartitions(self._ids[name], list(indexes))
            for name, indexes in by_topic.items()
            if indexes
        ]

    def result(self, response: Any) -> tuple[int, Any]:
        """Return (member epoch, assignment) of a successful heartbeat response.

        The assignment is None if it has not changed. If all its partitions are of the group's own topic, it is the list of their numbers. Otherwise
        it is a dict of topic names to partition numbers.
        """
        assert (response.error_code, response.error_message) == (0, None), response
        if response.assignment is None:
            return response.member_epoch, None
        names = {topic_id: name for name, topic_id in self._ids.items()}
        assigned_indexes = {names[t.topic_id]: sorted(t.partitions) for t in response.assignment.topic_partitions}
        if set(assigned_indexes) <= {self.topic.name}:
            return response.member_epoch, assigned_indexes.get(self.topic.name, [])
        return response.member_epoch, assigned_indexes

    def beat(self, member_id: str, epoch: int, owned: Owned | None = None) -> tuple[int, Any]:
        """Send a heartbeat of a member that has joined. Returns (member epoch, assignment); see `result` for the form of the assignment.

        owned: the partitions that the member owns; None leaves them unchanged.
        """
        return self.result(self.heartbeat(member_id, epoch, owned))

    def enter(self, member_id: str, *names: str, **fields: Any) -> tuple[int, Any]:
        """Send the first heartbeat of a member, which joins the group.

        names: the topics that the member subscribes to, by default the group's topic. fields: further fields of the request. Returns (member
        epoch, assignment); see `result` for the form of the assignment.
        """
        return self.result(self.join(member_id, *names, **fields))

    def described(self) -> Any:
        """Return the group's entry of a ConsumerGroupDescribe response."""
        [group] = self.ask(ConsumerGroupDescribeRequest([self.id]), self.version).groups
        return group

    @property
    def epochs(self) -> tuple[str, int, int]:
        """Return (state, group epoch, assignment epoch): the state of the group, and the two epochs that ConsumerGroupDescribe returns."""
        group = self.described()
        return group.group_state, group.group_epoch, group.assignment_epoch

    def targets(self) -> dict[str, dict[str, list[int]]]:
        """Return the target assignments as {member id: {topic name: partitions}}."""
        return {
            member.member_id: {t.topic_name: sorted(t.partitions) for t in member.target_assignment.topic_partitions}
            for member in self.described().members
        }

    def sizes(self) -> dict[str, int]:
        """Return a dict of member ids to the number of partitions in the target assignment of the member."""
        return {member_id: sum(map(len, target.values())) for member_id, target in self.targets().items()}


def refusal(response: Any) -> tuple[int, str | None]:
    """Return (error code, error message) of the response to a rejected heartbeat. The message is None if the broker sent none.

    Checks that member id, member epoch, heartbeat interval and assignment in the response have their defaults.
    """
    fields = (response.member_id, response.member_epoch, response.heartbeat_interval_ms, response.assignment)
    assert fields == (None, 0, 0, None), response
    return response.error_code, response.error_message
