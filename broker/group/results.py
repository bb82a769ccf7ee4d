"""The arguments and results of the group coordinator, as plain data. They contain no wire messages or times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

NO_GENERATION = -1
UNKNOWN_MEMBER_ID = ""
UNKNOWN_GROUP = "Dead"
"""The state that is reported for an unknown group."""
ALWAYS = -1
"""The `created_at` of a group that every request sees, such as a group loaded from `__consumer_offsets`.

Otherwise `created_at` is the log end offset of the group's partition at its creation: requests that only read see the group when the high watermark
is above it.
"""

Protocols = tuple[tuple[str, bytes], ...]
"""A member's protocols as (name, metadata) pairs, in the member's order of preference."""


@dataclass(slots=True)
class JoinRequest:
    """One JoinGroup request. Timeouts are in ms.

    member_id: "" if the member has no id yet. group_instance_id: the `group.instance.id` of a static member; None for a dynamic one.
    requires_member_id: whether a new dynamic member must join again with the id that it is given (version 4 and later). can_skip_assignment: whether
    the response can say that a static leader has nothing to assign (version 9 and later).
    """

    group_id: str
    member_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    client_id: str
    client_host: str
    group_instance_id: str | None = None
    requires_member_id: bool = False
    can_skip_assignment: bool = False


class JoinedMember(NamedTuple):
    """A member in the list that the group leader receives. metadata: its metadata for the chosen protocol, such as its encoded subscription."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(slots=True)
class JoinResult:
    """The result of a JoinGroup.

    protocol_name: the chosen protocol. leader_id: the member id of the group leader. members: all members with their metadata, if the result goes to
    the leader; otherwise empty. skip_assignment: whether the result goes to a leader that must keep the current assignment and not compute a new one
    (KIP-814).
    """

    member_id: str
    error_code: int = 0
    generation_id: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str = ""
    skip_assignment: bool = False
    members: Sequence[JoinedMember] = ()


@dataclass(slots=True)
class SyncRequest:
    """One SyncGroup request.

    protocol_type, protocol_name: the group's protocol type and chosen protocol, as the member knows them; None before version 5. assignments: (member
    id, encoded assignment) for each member, from the leader; empty from any other member.
    """

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: Sequence[tuple[str, bytes]] = ()


@dataclass(slots=True)
class SyncResult:
    """The result of a SyncGroup: an error code, or the member's encoded assignment with the group's protocol type and chosen protocol."""

    error_code: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


JoinReply = Callable[[JoinResult, int], None]
"""A function that sends the result of a JoinGroup. It is called with the result and the current time (ms)."""
SyncReply = Callable[[SyncResult, int], None]
"""A function that sends the result of a SyncGroup. It is called with the result and the current time (ms)."""


class LeavingMember(NamedTuple):
    """A member that is to leave. An administrator who removes a static member passes an empty member id and the member's instance id."""

    member_id: str
    group_instance_id: str | None = None


@dataclass(slots=True)
class LeaveResult:
    """The result of a LeaveGroup: the error code of the request and, if that is 0, (member, error code) for each member."""

    error_code: int
    members: Sequence[tuple[LeavingMember, int]] = ()


LeaveReply = Callable[[LeaveResult, int], None]
"""A function that is called once with the result of a LeaveGroup and the current time (ms), when the changes are replicated or cannot be stored."""


class GroupOverview(NamedTuple):
    """One group in the result of ListGroups.

    protocol_type: such as "consumer"; "" if the group has none, for example because it has only offsets. group_type: "classic", or "consumer" for the
    new protocol (KIP-848).
    """

    group_id: str
    protocol_type: str
    state: str
    group_type: str = "classic"


class DescribedMember(NamedTuple):
    """One member in the description of a group.

    metadata: the member's encoded subscription for the group's protocol; empty unless the group is stable. assignment: its encoded assignment; empty
    unless the group is stable. Exception: during a rebalance, Kafka's group coordinator in Java keeps the previous assignment (GC-52).
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(slots=True)
class GroupDescription:
    """One group in the result of DescribeGroups. An unknown group has the state Dead and no error.

    protocol_type: such as "consumer". protocol_name: the chosen protocol. Both are "" for none.
    """

    group_id: str
    state: str
    error_code: int = 0
    protocol_type: str = ""
    protocol_name: str = ""
    members: Sequence[DescribedMember] = ()


@dataclass(frozen=True, slots=True)
class TransactionalCommit:
    """A request to commit offsets of a group in a producer's transaction.

    generation_id: the generation, or the member epoch in a group of the new protocol (KIP-848). A producer that does not know the member id and
    generation of its consumer sends -1 and an empty member id. group_instance_id: the instance id of a static member; None if the request names none.
    """

    group_id: str
    producer_id: int
    producer_epoch: int
    generation_id: int
    member_id: str
    group_instance_id: str | None
