"""Conversations about a group of classic members: `ClassicWriter` chooses the steps, and `ClassicPlayer` plays them on a subject.

The members may be static, or have only an id and not joined with it yet. Each member has a connection of its own. A member that sends a request
while an earlier one is parked abandons the earlier one. The order of members and of committed partitions is not compared: it depends on ids and
names.
"""

from __future__ import annotations

from random import Random
from typing import Any

from kafkaproto.api import ApiKey
from kafkaproto.conformance.client import Connection
from kafkaproto.conformance.groups import Group, subscription
from kafkaproto.conformance.scene import new_topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.messages.heartbeat import HeartbeatRequest
from kafkaproto.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkaproto.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.differential.group_admin import (
    ADMIN,
    FIRST,
    SECOND,
    UNKNOWN_ID,
    AdminRequests,
    AdminWriter,
    Identity,
    Step,
    served,
)
from tests.differential.shown import Shown
from tests.differential.stored import StoredRecords

MOST_MEMBERS = 3
SESSION_MS, TIMEOUT_MS = 45_000, 60_000
PARKABLE = ("join", "sync")
PARKED_MS = 120
"""The time in ms without a response after which a request counts as parked, before and again after all changes are written."""
COMPLETING = ("join", "sync", f"{ADMIN}leave")
"""The kinds of steps that may complete the parked requests of other members."""
FIRST_STATIC_VERSION = {"join": 5, "sync": 3, "beat": 3}
"""The first versions with a group instance id."""
PROTOCOL_VERSION = 5
"""The first version of SyncGroup that names the protocol."""
UNKNOWN_MEMBER = 25


class ClassicWriter:
    """A generator of one conversation of one to three classic members."""

    def __init__(self, seed: int, release: str) -> None:
        self.chance = Random(seed)
        self.release = release
        self.is_static = self.chance.random() < 0.4
        self.members = range(self.chance.choice([1, 2, 2, MOST_MEMBERS]))
        self.latest = self.chance.choice(self.members)
        """The member that sent the last JoinGroup. This member often sends the next request, so that many members join with their id, and sync."""
        self.admin = AdminWriter(self.chance, self.members, (FIRST, SECOND), release)

    def write(self) -> tuple[Step, ...]:
        first_steps = [self._join() for _ in range(3)]
        return tuple(first_steps + [self._step() for _ in range(self.chance.randint(10, 28))])

    def _step(self) -> Step:
        kinds = [self._join] * 7 + [self._sync] * 9 + [self._beat] * 2 + [self.admin.step] * 14
        return self.chance.choice(kinds)()

    def _version(self, key: ApiKey, *listed: int) -> int:
        return self.chance.choice(served(key, listed, self.release))

    def _member(self) -> int:
        return self.chance.choice([self.latest] * 3 + list(self.members))

    def _join(self) -> Step:
        chance, member = self.chance, self._member()
        self.latest = member
        shared = chance.choice([member, member, member, 0])
        return "join", {
            "member": member,
            "version": self._version(ApiKey.JOIN_GROUP, 1, 3, 4, 5, 5, 6, 7, 8, 9, 9),
            "id": chance.choice(["own"] * 18 + ["none", "unknown", "other"]),
            "instance": f"i{shared}" if self.is_static and chance.random() < 0.8 else None,
            "kind": chance.choice(["consumer"] * 40 + ["connect", ""]),
            "protocols": chance.choice([["a"]] * 24 + [["a", "b"]] * 3 + [["b", "a"]] * 3 + [["b"], []]),
            "topics": chance.choice([[FIRST]] * 6 + [[FIRST, SECOND], [SECOND], None]),
            "session_ms": chance.choice([SESSION_MS] * 40 + [5999, 1_800_001]),
        }

    def _of_generation(self, *versions: int, key: ApiKey) -> dict[str, Any]:
        chance = self.chance
        return {
            "member": self._member(),
            "version": self._version(key, *versions),
            "id": chance.choice(["own"] * 24 + ["unknown", "none"]),
            "generation": chance.choice(["own"] * 12 + ["older", "newer", "none"]),
            "instance": chance.random() < 0.8,
        }

    def _sync(self) -> Step:
        fields = self._of_generation(0, 2, 3, 4, 5, 5, key=ApiKey.SYNC_GROUP)
        names = [self.chance.choice(["own"] * 12 + ["wrong", "none"]) for _ in range(2)]
        return "sync", {**fields, "kind": names[0], "protocol": names[1]}

    def _beat(self) -> Step:
        return "beat", self._of_generation(0, 2, 3, 4, key=ApiKey.HEARTBEAT)


class Member:
    """What a member knows.

    led: the ids of all members if it is the leader. ids: how many member ids it has received. parked: the kind of its request that is parked, or
    None.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.member_id, self.generation = "", -1
        self.instance: str | None = None
        self.kind, self.protocol = "consumer", "a"
        self.led: list[str] = []
        self.ids = 0
        self.parked: str | None = None


class ClassicPlayer:
    """A conversation on one subject, with a group and two topics of its own."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.group = Group(subject)
        self.topics = {name: new_topic(subject, 2) for name in (FIRST, SECOND)}
        self.shown = Shown()
        self.members = [Member(self.group.connect()) for _ in range(MOST_MEMBERS)]
        self.admin = AdminRequests(self.group, self.topics, self.shown, self._identity)
        self.stored = StoredRecords(self.group, self.shown)

    def _identity(self, member: int) -> Identity:
        state = self.members[member]
        return Identity(state.member_id, state.generation, state.instance)

    def answered(self, step: Step) -> Any:
        """Return the response to the step's request, and the responses to parked requests that the step completed, by member."""
        kind, arguments = step
        if kind.startswith(ADMIN):
            response = self.admin.answered(kind, arguments)
        else:
            response = getattr(self, f"_{kind}")(**arguments)
        return response, self._completed(arguments.get("member", -1)) if kind in COMPLETING else []

    def _records(self) -> Any:
        return self.stored.plain()

    # ---- requests of members ---------------------------------------------------------------------------------------------------

    def _response_to(self, index: int, kind: str, request: Any, version: int) -> Any:
        member = self.members[index]
        if member.parked is not None:
            member.connection.close()
            member.connection, member.parked = self.group.connect(), None
        if kind not in PARKABLE:
            return self._seen(index, kind, self.subject.ask(member.connection, request, version))
        self.subject.send(member.connection, request, version)
        response = self.subject.answer_or_none(member.connection, PARKED_MS)
        if response is None:
            self.admin.await_changes()
            response = self.subject.answer_or_none(member.connection, PARKED_MS)
        if response is None:
            member.parked = kind
            return "parked"
        return self._seen(index, kind, response.message)

    def _completed(self, asking: int) -> list[Any]:
        """Return the responses to parked requests of members other than the one that sent the last request."""
        parked = [i for i, member in enumerate(self.members) if member.parked is not None and i != asking]
        if parked:
            self.admin.await_changes()
        return [(i, response) for i in parked if (response := self._late(i)) is not None]

    def _late(self, index: int) -> Any:
        member = self.members[index]
        response = self.subject.answer_or_none(member.connection, PARKED_MS)
        if response is None:
            return None
        kind, member.parked = member.parked, None
        assert kind is not None
        return self._seen(index, kind, response.message)

    def _seen(self, index: int, kind: str, response: Any) -> Any:
        """Remember what a response says, and return what is compared."""
        member = self.members[index]
        if kind == "join":
            if response.error_code in (0, 79) and response.member_id != member.member_id:
                member.member_id = response.member_id
                self.shown.add(response.member_id, f"id {member.ids} of {index}")
                member.ids += 1
            if response.error_code == 0:
                member.generation, member.protocol = response.generation_id, response.protocol_name
                member.led = [listed.member_id for listed in response.members]
            elif response.error_code == UNKNOWN_MEMBER:
                member.member_id = ""  # it joins as a new member next time, as clients do
            response.members.sort(key=lambda listed: repr(self.shown.plain(listed)))
        return self.shown.plain(response)

    def _member_id(self, index: int, named: str) -> str:
        other = self.members[(index + 1) % MOST_MEMBERS].member_id
        return {"own": self.members[index].member_id, "none": "", "unknown": UNKNOWN_ID, "other": other}[named]

    def _generation(self, index: int, generation: str) -> int:
        own = self.members[index].generation
        return {"own": own, "older": own - 1, "newer": own + 1, "none": -1}[generation]

    def _join(
        self,
        member: int,
        version: int,
        id: str,
        instance: str | None,
        kind: str,
        protocols: list[str],
        topics: list[str] | None,
        session_ms: int,
    ) -> Any:
        state = self.members[member]
        state.instance = instance if version >= FIRST_STATIC_VERSION["join"] else None
        state.kind = kind
        metadata = b"\0" if topics is None else subscription(*(self.topics[name].name for name in topics))
        self.shown.add(metadata, f"subscription of {topics}")
        listed = [JoinGroupRequestProtocol(name, metadata) for name in protocols]
        request = JoinGroupRequest(
            self.group.id, session_ms, TIMEOUT_MS, self._member_id(member, id), state.instance, kind, listed
        )
        return self._response_to(member, "join", request, version)

    def _sync(
        self, member: int, version: int, id: str, generation: str, instance: bool, kind: str, protocol: str
    ) -> Any:
        state = self.members[member]
        request = SyncGroupRequest(
            self.group.id, self._generation(member, generation), self._member_id(member, id), None
        )
        if instance and version >= FIRST_STATIC_VERSION["sync"]:
            request.group_instance_id = state.instance
        if version >= PROTOCOL_VERSION:
            request.protocol_type = {"own": state.kind, "wrong": "wrong", "none": None}[kind]
            request.protocol_name = {"own": state.protocol, "wrong": "wrong", "none": None}[protocol]
        request.assignments = [
            SyncGroupRequestAssignment(led, b"for " + self.shown.plain(led).encode()) for led in state.led
        ]
        return self._response_to(member, "sync", request, version)

    def _beat(self, member: int, version: int, id: str, generation: str, instance: bool) -> Any:
        request = HeartbeatRequest(
            self.group.id, self._generation(member, generation), self._member_id(member, id), None
        )
        if instance and version >= FIRST_STATIC_VERSION["beat"]:
            request.group_instance_id = self.members[member].instance
        return self._response_to(member, "beat", request, version)
