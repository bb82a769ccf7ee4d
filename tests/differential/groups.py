"""Play a conversation about a group of the new protocol on a subject, and return the responses without ids that depend on the subject.

The members of the new protocol choose their ids, so that assignments are the same on each broker. In a conversation with a classic member, whose
id the broker chooses, only the number of assigned partitions is compared, and not even this number once a member has chosen the assignor `range`:
`range` gives more partitions to members whose ids come first (GN-40). There is one topic, because assignors order topics by their ids.
"""

from __future__ import annotations

import struct
from typing import Any

from kafkaproto.conformance.consumer_groups import ConsumerGroup
from kafkaproto.conformance.scene import Topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.coordinator_records import write_value
from kafkaproto.data.consumer_protocol_subscription import ConsumerProtocolSubscription, TopicPartition
from kafkaproto.messages.heartbeat import HeartbeatRequest
from kafkaproto.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkaproto.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kafkaproto.messages.list_groups import ListGroupsRequest
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaproto.messages.sync_group import SyncGroupRequest
from tests.differential.conversations import CLASSIC, Step
from tests.differential.group_admin import ADMIN, FIRST, AdminRequests, Identity
from tests.differential.shown import Shown
from tests.differential.stored import StoredRecords

TIMEOUT_MS, SESSION_MS = 60_000, 45_000
RESOLVED_MS = 200
"""The time in ms within which the broker resolves a regular expression."""
RESOLVING = ("join", "beat", "change")
"""The steps that may let the broker resolve the regular expressions of the group."""
SUBSCRIPTION_VERSION = 1
"""The first version of a subscription with owned partitions."""
FIRST_STATIC_VERSION = 5
"""The first version of JoinGroup with a group instance id."""
UNKNOWN_MEMBER = 25
RANGE = "range"
PARKED_MS = 300
VISIBLE_MS = 200
"""The time in ms after which the change of a group that was not awaited is visible in DescribeGroups and ListGroups."""


class GroupPlayer:
    """A conversation on one subject, with a group and a topic of its own."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.group = ConsumerGroup(subject)
        self.topics: list[Topic] = [self.group.topic]
        self.epochs: dict[str, int] = {}
        self.assigned: dict[str, dict[str, list[int]]] = {}
        self.instances: dict[str, str | None] = {}
        self.counts_only = self.has_range = self.has_regexes = False
        self.member_id, self.generation = "", -1
        self.connection = self.group.connect()
        self.shown = Shown()
        self.admin = AdminRequests(self.group, {FIRST: self.group.topic}, self.shown, self._identity)
        self.stored = StoredRecords(self.group, self.shown)

    def answered(self, step: Step) -> Any:
        kind, arguments = step
        if kind.startswith(ADMIN):
            return self.admin.answered(kind, arguments)
        self.counts_only |= kind.startswith(CLASSIC)
        self.has_range |= arguments.get("assignor") == RANGE
        response = getattr(self, f"_{kind}")(**arguments)
        self.has_regexes |= bool(arguments.get("regex"))
        if self.has_regexes and kind in RESOLVING:
            self.subject.pass_ms(RESOLVED_MS)
        return response

    def _identity(self, member: str) -> Identity:
        if member == CLASSIC:
            return Identity(self.member_id, self.generation, None)
        return Identity(member, self.epochs.get(member, 1), self.instances.get(member))

    def _error(self, response: Any) -> Any:
        return response.error_code, self.shown.plain(response.error_message)

    def _name(self, topic_id: bytes) -> str:
        return f"topic {next(i for i, topic in enumerate(self.topics) if topic.topic_id == topic_id)}"

    # ---- members of the new protocol -----------------------------------------------------------------------------------------

    def _subscription(self, names: list[int] | None, regex: str | None) -> dict[str, Any]:
        first = self.topics[0].name
        patterns = {
            "first": first,
            "matching": f"{first[:-2]}.*",
            "nothing": f"no-{first}",
            "prefix": first[:-1],
            "invalid": "(",
            "": "",
        }
        subscription: dict[str, Any] = {"names": None if names is None else [first for _ in names]}
        if regex is not None:
            subscription["subscribed_topic_regex"] = patterns[regex]
            if regex not in ("", "first"):
                self.stored.patterns[patterns[regex]] = f"regex {regex}"
        return subscription

    def _owned(self, member: str, owned: str) -> dict[str, list[int]] | None:
        every = {topic.name: list(range(6)) for topic in self.topics[:1]}
        return {"none": None, "nothing": {}, "all": every, "assigned": dict(self.assigned.get(member, {}))}[owned]

    def _seen(self, member: str, response: Any) -> Any:
        """Remember what a response says, and return what is compared."""
        if response.error_code:
            return self._error(response)
        self.epochs[member] = response.member_epoch
        if response.assignment is None:
            return *self._error(response), response.member_epoch, response.heartbeat_interval_ms, None
        names = {topic.topic_id: topic.name for topic in self.topics}
        listed = response.assignment.topic_partitions
        self.assigned[member] = {names[t.topic_id]: sorted(t.partitions) for t in listed}
        heartbeat_fields = *self._error(response), response.member_epoch, response.heartbeat_interval_ms
        return *heartbeat_fields, self._partitions(listed)

    def _partitions(self, listed: Any) -> Any:
        if self.counts_only and self.has_range:
            return None
        if self.counts_only:
            return sum(len(t.partitions) for t in listed)
        return sorted((self._name(t.topic_id), sorted(t.partitions)) for t in listed)

    def _join(
        self,
        member: str,
        instance: str | None,
        names: list[int] | None,
        regex: str | None,
        assignor: str | None = None,
    ) -> Any:
        self.instances[member] = instance
        subscription = self._subscription(names, regex) | {"server_assignor": assignor}
        response = self.group.heartbeat(member, 0, [], timeout_ms=TIMEOUT_MS, instance_id=instance, **subscription)
        if not response.error_code:
            self.assigned[member] = {}
        return self._seen(member, response)

    def _beat(self, member: str, epoch: str, owned: str) -> Any:
        own = self.epochs.get(member, 1)
        number = {"own": own, "older": own - 1, "newer": own + 1, "zero": 0}[epoch]
        response = self.group.heartbeat(
            member, number, self._owned(member, owned), instance_id=self.instances.get(member)
        )
        return self._seen(member, response)

    def _change(self, member: str, names: list[int] | None, regex: str | None) -> Any:
        response = self.group.heartbeat(
            member,
            self.epochs.get(member, 1),
            instance_id=self.instances.get(member),
            **self._subscription(names, regex),
        )
        return self._seen(member, response)

    def _leave(self, member: str, epoch: int) -> Any:
        response = self.group.heartbeat(member, epoch, instance_id=self.instances.get(member))
        if not response.error_code and epoch == -1:
            self.assigned.pop(member, None)
        return *self._error(response), response.member_epoch

    def _commit(self, member: str, version: int, epoch: str) -> Any:
        own = self.epochs.get(member, 1)
        number = {"own": own, "older": own - 1, "newer": own + 1, "no member": -1}[epoch]
        topics = [OffsetCommitRequestTopic(self.topics[0].name, partitions=[OffsetCommitRequestPartition(0, 5)])]
        request = OffsetCommitRequest(self.group.id, number, "" if epoch == "no member" else member, topics=topics)
        return self.group.ask(request, version).topics[0].partitions[0].error_code

    def _records(self) -> Any:
        """Return the records that the group has written, or None if the random id of a classic member decides what they contain."""
        return None if self.counts_only else self.stored.plain()

    def _describe(self) -> Any:
        group = self.group.described()
        members = sorted(
            (
                self._alias(member.member_id),
                member.instance_id,
                member.member_epoch,
                len(member.subscribed_topic_names),
                bool(member.subscribed_topic_regex),
                self._partitions(member.assignment.topic_partitions),
                self._partitions(member.target_assignment.topic_partitions),
                getattr(member, "member_type", None),
            )
            for member in group.members
        )
        return (
            *self._error(group),
            group.group_state,
            group.group_epoch,
            group.assignment_epoch,
            group.assignor_name,
            members,
        )

    def _alias(self, member_id: str) -> str:
        return CLASSIC if member_id == self.member_id else member_id

    # ---- the classic member ----------------------------------------------------------------------------------------------------

    def _response_to(self, request: Any, version: int) -> Any:
        """Send a request of the classic member, and return the response, or None if it is parked. A parked request is abandoned."""
        self.subject.send(self.connection, request, version)
        response = self.subject.answer_or_none(self.connection, PARKED_MS)
        if response is None:
            self.connection.close()
            self.connection = self.group.connect()
            return None
        return response.message

    def _classic_join(self, version: int, owned: str) -> Any:
        """Send JoinGroup for the classic member. After UNKNOWN_MEMBER_ID its next JoinGroup has no member id, as with real clients."""
        partitions = self.assigned.get(CLASSIC, {}) if owned == "assigned" else {}
        topics = [TopicPartition(name, indexes) for name, indexes in partitions.items()]
        subscription = ConsumerProtocolSubscription([self.topics[0].name], b"", topics)
        protocols = [JoinGroupRequestProtocol("range", write_value(subscription, SUBSCRIPTION_VERSION))]
        request = JoinGroupRequest(self.group.id, SESSION_MS, TIMEOUT_MS, self.member_id, None, "consumer", protocols)
        response = self._response_to(request, version)
        if response is None:
            return "parked"
        if response.error_code == UNKNOWN_MEMBER and self.member_id:
            self.member_id = ""
        if response.error_code in (0, 79):
            self.member_id = response.member_id
            self.shown.add(self.member_id, CLASSIC)
        if response.error_code == 0:
            self.generation = response.generation_id
        leads = response.leader == self.member_id
        return response.error_code, response.generation_id, leads, response.protocol_type, len(response.members)

    def _classic_refused(self, version: int, static: bool) -> Any:
        """Send the first JoinGroup of another classic member, without protocols. It is rejected."""
        instance = "classic" if static and version >= FIRST_STATIC_VERSION else None
        request = JoinGroupRequest(self.group.id, SESSION_MS, TIMEOUT_MS, "", instance, "consumer", [])
        response = self._response_to(request, version)
        return "parked" if response is None else (response.error_code, response.member_id)

    def _generation(self, generation: str) -> int:
        return self.generation + {"own": 0, "older": -1, "newer": 1}[generation]

    def _classic_sync(self, generation: str) -> Any:
        request = SyncGroupRequest(self.group.id, self._generation(generation), self.member_id)
        response = self._response_to(request, 4)
        if response is None:
            return "parked"
        count = self._take_assignment(bytes(response.assignment)) if response.error_code == 0 else None
        return response.error_code, None if self.has_range else count

    def _take_assignment(self, data: bytes) -> int:
        """Remember the partitions in the assignment of the classic member, and return their number."""
        if not data:
            return 0
        _, topics = struct.unpack_from(">hi", data)
        at, self.assigned[CLASSIC] = 6, {}
        for _ in range(topics):
            (length,) = struct.unpack_from(">h", data, at)
            name = data[at + 2 : at + 2 + length].decode()
            (count,) = struct.unpack_from(">i", data, at + 2 + length)
            indexes = struct.unpack_from(f">{count}i", data, at + 6 + length)
            self.assigned[CLASSIC][name] = list(indexes)
            at += 6 + length + 4 * count
        return sum(map(len, self.assigned[CLASSIC].values()))

    def _classic_beat(self, generation: str) -> Any:
        response = self._response_to(HeartbeatRequest(self.group.id, self._generation(generation), self.member_id), 3)
        return response.error_code

    def _classic_leave(self, version: int) -> Any:
        request = LeaveGroupRequest(self.group.id, members=[MemberIdentity(self.member_id)])
        response = self._response_to(request, version)
        self.assigned.pop(CLASSIC, None)
        return response.error_code, [member.error_code for member in response.members]

    def _classic_describe(self) -> Any:
        self.subject.pass_ms(VISIBLE_MS)
        described = self.group.describe()
        state = described.error_code, described.group_state, len(described.members)
        listed = [g for g in self.group.ask(ListGroupsRequest(), 5).groups if g.group_id == self.group.id]
        return state, [(g.protocol_type, g.group_state, g.group_type) for g in listed]
