"""What goes into and comes out of the group coordinator. Plain data: no wire message, no time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

NO_GENERATION = -1
UNKNOWN_MEMBER_ID = ""

Protocols = tuple[tuple[str, bytes], ...]
"""(name, metadata) in the member's order of preference."""


@dataclass(slots=True)
class JoinRequest:
    """One JoinGroup. member_id "": not known yet. group_instance_id: of a static member, else None.

    requires_member_id: a dynamic member must come back with the id that it is given (version 4 and later).
    can_skip_assignment: a static leader can be told that it leads and has nothing to assign (version 9 and later).
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
    """A member as its leader sees it: metadata is of the chosen protocol."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(slots=True)
class JoinResult:
    """The answer to a JoinGroup; `members` is empty for all but the leader."""

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
    """One SyncGroup. protocol_type, protocol_name: None before version 5. assignments: the leader's, by member id."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: Sequence[tuple[str, bytes]] = ()


@dataclass(slots=True)
class SyncResult:
    """The answer to a SyncGroup."""

    error_code: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


JoinReply = Callable[[JoinResult, int], None]
SyncReply = Callable[[SyncResult, int], None]
"""Called with the answer and the time at which it is given."""


class LeavingMember(NamedTuple):
    """Who leaves: by member id, or (member_id "") by instance id, as an administrator names a static member."""

    member_id: str
    group_instance_id: str | None = None


@dataclass(slots=True)
class LeaveResult:
    """`error_code` for the request; (member, its error code) for each member if that is 0."""

    error_code: int
    members: Sequence[tuple[LeavingMember, int]] = ()


class GroupOverview(NamedTuple):
    """One line of ListGroups. protocol_type "": offsets only."""

    group_id: str
    protocol_type: str
    state: str


class DescribedMember(NamedTuple):
    """One member of a described group; metadata and assignment are empty unless the group is stable."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(slots=True)
class GroupDescription:
    """One group of DescribeGroups. A group that does not exist is Dead, without an error."""

    group_id: str
    state: str
    error_code: int = 0
    protocol_type: str = ""
    protocol_name: str = ""
    members: Sequence[DescribedMember] = ()
