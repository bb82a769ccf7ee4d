"""Steps of conversations about groups that any client may send: offsets, removal of members, deletion and description of the group.

`AdminWriter` chooses a step as plain values, and `AdminRequests` creates its request. Neither knows the expected responses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any, NamedTuple

from kafkaproto.api import ApiKey
from kafkaproto.conformance.groups import Group
from kafkaproto.conformance.scene import Topic
from kafkaproto.messages.delete_groups import DeleteGroupsRequest
from kafkaproto.messages.describe_groups import DescribeGroupsRequest
from kafkaproto.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kafkaproto.messages.list_groups import ListGroupsRequest
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaproto.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kafkaproto.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kafkaproto.releases import versions
from tests.differential.shown import Shown

Step = tuple[str, dict[str, Any]]

ADMIN = "admin_"
"""The prefix of the kinds of these steps."""
FIRST, SECOND, MISSING = "first topic", "second topic", "missing topic"
UNKNOWN_ID = "unknown id"
MISSING_ID = b"\x07" * 16
NO_GENERATION = -1
PARTITIONS: tuple[dict[str, list[int]], ...] = (
    {FIRST: [0]},
    {FIRST: [0, 1]},
    {FIRST: [1, 0, 99]},
    {FIRST: [0], SECOND: [1]},
    {SECOND: [1, 0]},
    {MISSING: [0], FIRST: [1]},
    {MISSING: [0]},
    {FIRST: []},
    {},
)
METADATA = (("", 0), ("", 0), ("m", 1), None, ("x", 4096), ("x", 4097), ("\u00e9", 3000))
"""The metadata of a commit, as a character and how often it is repeated. 4096 is the limit."""


def served(key: ApiKey, listed: Iterable[int], release: str) -> list[int]:
    """Return those of the listed versions that a release serves."""
    low, high = versions(release)[key]
    return [version for version in listed if low <= version <= high]


class AdminWriter:
    """Chooses steps. members: the names of the members. topics: the topics that exist."""

    def __init__(self, chance: Random, members: Sequence[Any], topics: Sequence[str], release: str) -> None:
        self.chance, self.members, self.release = chance, members, release
        self._partitions: list[dict[str, list[int]]] = [p for p in PARTITIONS if set(p) <= {*topics, MISSING}]

    def step(self) -> Step:
        kinds = [self._commit] * 8 + [self._fetch] * 6 + [self._delete_offsets] * 3
        kinds += [self._leave] * 3 + [self._describe] * 3 + [self._list] * 2 + [self._delete_group]
        kind, arguments = self.chance.choice(kinds)()
        return ADMIN + kind, arguments

    def _version(self, key: ApiKey, *listed: int) -> int:
        return self.chance.choice(served(key, listed, self.release))

    def _commit(self) -> Step:
        chance = self.chance
        return "commit", {
            "version": self._version(ApiKey.OFFSET_COMMIT, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10),
            "member": chance.choice(self.members),
            "ids": chance.choice(["own"] * 8 + ["none"] * 3 + ["older", "newer", "no member id", "no generation"]),
            "partitions": chance.choice(self._partitions),
            "offset": chance.choice([0, 5, 7, -1, 1 << 40]),
            "leader_epoch": chance.choice([-1, 0, 3]),
            "metadata": chance.choice(METADATA),
            "instance": chance.random() < 0.8,
            "retention_ms": chance.choice([-1, -1, 100_000_000]),
        }

    def _fetch(self) -> Step:
        chance = self.chance
        version = self._version(ApiKey.OFFSET_FETCH, 1, 2, 5, 6, 7, 8, 8, 9, 9, 10, 10)
        every: list[dict[str, list[int]] | None] = [None] * 6 if version >= 2 else []
        return "fetch", {
            "version": version,
            "member": chance.choice(self.members),
            "ids": chance.choice(["none", "none", "own", "older", "newer", "unknown", "no generation"]),
            "partitions": chance.choice(every + list(self._partitions)),
            "stable": chance.random() < 0.4,
            "other": chance.random() < 0.2,
        }

    def _delete_offsets(self) -> Step:
        return "delete_offsets", {"partitions": self.chance.choice(self._partitions)}

    def _delete_group(self) -> Step:
        version = self._version(ApiKey.DELETE_GROUPS, 0, 1, 2)
        return "delete_group", {"version": version, "times": self.chance.choice([1, 1, 2])}

    def _leave(self) -> Step:
        count = self.chance.choice([1, 1, 2, 3])
        return "leave", {
            "version": self._version(ApiKey.LEAVE_GROUP, 0, 2, 3, 4, 5),
            "members": [self.chance.choice(self.members) for _ in range(count)],
            "by": self.chance.choice(["id", "id", "both", "instance", "unknown"]),
        }

    def _describe(self) -> Step:
        version = self._version(ApiKey.DESCRIBE_GROUPS, 0, 2, 3, 4, 5, 6, 6)
        return "describe", {
            "version": version,
            "operations": self.chance.random() < 0.3,
            "times": self.chance.choice([1, 1, 1, 2]),
        }

    def _list(self) -> Step:
        states = [[], [], ["Empty"], ["stable"], ["PreparingRebalance", "CompletingRebalance"], ["Unknown"], ["Dead"]]
        states += [["Assigning", "Reconciling"]]
        types: list[list[str]] = [[], [], ["classic"], ["Consumer"], ["unknown"]]
        return "list", {
            "version": self._version(ApiKey.LIST_GROUPS, 0, 2, 3, 4, 5, 5),
            "states": self.chance.choice(states),
            "types": self.chance.choice(types),
        }


class Identity(NamedTuple):
    """The ids of a member: generation is its member epoch if it uses the new protocol."""

    member_id: str
    generation: int
    instance: str | None


class AdminRequests:
    """Sends the requests about one group over a connection of its own. identity: returns the ids of a member by its name."""

    def __init__(
        self, group: Group, topics: dict[str, Topic], shown: Shown, identity: Callable[[Any], Identity]
    ) -> None:
        self.group, self.topics, self.shown, self.identity = group, topics, shown, identity
        self.other = Group(group.subject, group.index)
        self.connection = group.connect()
        shown.add(group.id, "group")
        shown.add(self.other.id, "other group")
        shown.add(MISSING_ID, f"id of {MISSING}")
        for name, topic in topics.items():
            shown.add(topic.name, name)
            shown.add(topic.topic_id, f"id of {name}")

    def answered(self, kind: str, arguments: dict[str, Any]) -> Any:
        return self.shown.plain(getattr(self, f"_{kind.removeprefix(ADMIN)}")(**arguments))

    def await_changes(self) -> None:
        """Wait until the coordinator has written all earlier changes of its partition, by committing an offset of another group."""
        topic = OffsetCommitRequestTopic(self.topics[FIRST].name, partitions=[OffsetCommitRequestPartition(0, 0)])
        [topic_seen] = self._ask(OffsetCommitRequest(self.other.id, topics=[topic]), 8).topics
        assert topic_seen.partitions[0].error_code == 0

    def _ask(self, request: Any, version: int) -> Any:
        return self.group.subject.ask(self.connection, request, version)

    def _name(self, topic: str) -> str:
        return self.topics[topic].name if topic in self.topics else topic.replace(" ", "-")

    def _named(self, topic: str, by_id: bool) -> dict[str, Any]:
        """Return the field that names a topic."""
        if by_id:
            return {"topic_id": self.topics[topic].topic_id if topic in self.topics else MISSING_ID}
        return {"name": self._name(topic)}

    def _ids(self, member: Any, ids: str) -> tuple[int, str]:
        member_id, own, _ = self.identity(member)
        return {
            "own": (own, member_id),
            "none": (NO_GENERATION, ""),
            "older": (own - 1, member_id),
            "newer": (own + 1, member_id),
            "no member id": (own, ""),
            "no generation": (NO_GENERATION, member_id),
            "unknown": (own, UNKNOWN_ID),
        }[ids]

    # ---- offsets -------------------------------------------------------------------------------------------------------------

    def _commit(
        self,
        version: int,
        member: Any,
        ids: str,
        partitions: dict[str, list[int]],
        offset: int,
        leader_epoch: int,
        metadata: tuple[str, int] | None,
        instance: bool,
        retention_ms: int,
    ) -> Any:
        text = None if metadata is None else metadata[0] * metadata[1]
        epoch = leader_epoch if version >= 6 else -1
        topics = [
            OffsetCommitRequestTopic(
                **self._named(topic, version >= 10),
                partitions=[
                    OffsetCommitRequestPartition(index, offset, epoch, committed_metadata=text) for index in indexes
                ],
            )
            for topic, indexes in partitions.items()
        ]
        request = OffsetCommitRequest(self.group.id, *self._ids(member, ids), topics=topics)
        if instance and version >= 7 and ids != "none":
            request.group_instance_id = self.identity(member).instance
        if version <= 4:
            request.retention_time_ms = retention_ms
        return self._in_order(self._ask(request, version).topics)

    def _in_order(self, topics: Any) -> Any:
        """Return topics and partitions of a response in an order that does not depend on their names."""
        listed = self.shown.plain(list(topics))
        for topic in listed:
            topic["partitions"].sort(key=repr)
        return sorted(listed, key=repr)

    def _fetch(
        self, version: int, member: Any, ids: str, partitions: dict[str, list[int]] | None, stable: bool, other: bool
    ) -> Any:
        request = OffsetFetchRequest(require_stable=stable and version >= 7)
        if version < 8:
            request.group_id = self.group.id
            request.topics = (
                None
                if partitions is None
                else [OffsetFetchRequestTopic(self._name(t), p) for t, p in partitions.items()]
            )
            response = self._ask(request, version)
            return response.error_code, self._in_order(response.topics) if partitions is None else response.topics
        topics = (
            None
            if partitions is None
            else [
                OffsetFetchRequestTopics(**self._named(topic, version >= 10), partition_indexes=indexes)
                for topic, indexes in partitions.items()
            ]
        )
        group = OffsetFetchRequestGroup(self.group.id, topics=topics)
        if version >= 9 and ids != "none":
            group.member_epoch, group.member_id = self._ids(member, ids)
        request.groups = [group] + [OffsetFetchRequestGroup(self.other.id, topics=topics)] * other
        groups = self._ask(request, version).groups
        return [
            (g.group_id, g.error_code, self._in_order(g.topics) if partitions is None else g.topics) for g in groups
        ]

    def _delete_offsets(self, partitions: dict[str, list[int]]) -> Any:
        topics = [
            OffsetDeleteRequestTopic(self._name(topic), [OffsetDeleteRequestPartition(index) for index in indexes])
            for topic, indexes in partitions.items()
        ]
        response = self._ask(OffsetDeleteRequest(self.group.id, topics), 0)
        return response.error_code, response.topics

    # ---- the group -----------------------------------------------------------------------------------------------------------

    def _delete_group(self, version: int, times: int) -> Any:
        return self._ask(DeleteGroupsRequest([self.group.id] * times), version)

    def _leave(self, version: int, members: list[Any], by: str) -> Any:
        def identified(member: Any) -> MemberIdentity:
            member_id, _, instance = self.identity(member)
            return MemberIdentity(
                *{"id": (member_id, None), "both": (member_id, instance), "instance": ("", instance)}.get(
                    by, (UNKNOWN_ID, None)
                )
            )

        if version < 3:
            return self._ask(LeaveGroupRequest(self.group.id, identified(members[0]).member_id), version)
        return self._ask(LeaveGroupRequest(self.group.id, members=[identified(m) for m in members]), version)

    def _describe(self, version: int, operations: bool, times: int) -> Any:
        self.await_changes()
        request = DescribeGroupsRequest([self.group.id] * times, operations and version >= 3)
        listed = self.shown.plain(self._ask(request, version).groups)
        for group in listed:
            group["members"].sort(key=repr)
        return listed

    def _list(self, version: int, states: list[str], types: list[str]) -> Any:
        self.await_changes()
        request = ListGroupsRequest(states if version >= 4 else [], types if version >= 5 else [])
        response = self._ask(request, version)
        return response.error_code, [self.shown.plain(g) for g in response.groups if g.group_id == self.group.id]
