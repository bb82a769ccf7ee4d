"""The arguments and results of the coordinator of consumer groups (KIP-848), and the checks of a heartbeat that do not depend on the group.

The classes hold plain data. This module does not depend on wire messages or time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kafkaproto.broker.config.java_text import java_trim
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.group.assignment import NOTHING, Assignment
from kafkaproto.error_codes import ErrorCode

JOINING, LEAVING, AWAY = 0, -1, -2
"""The member epochs that a heartbeat contains when a member joins, leaves for good, or (only a static member) leaves temporarily."""
UNCHANGED_MS = -1


@dataclass(slots=True)
class ConsumerHeartbeat:
    """One ConsumerGroupHeartbeat request. A field that has not changed since the last heartbeat is None (-1 in `rebalance_timeout_ms`).

    instance_id: also None for a dynamic member. owned: the partitions that the member reports as its own. creates_member_id: whether the coordinator
    creates the id of a new member (version 0).
    """

    group_id: str
    member_id: str
    member_epoch: int
    client_id: str
    client_host: str
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = UNCHANGED_MS
    topic_names: Sequence[str] | None = None
    topic_regex: str | None = None
    assignor: str | None = None
    owned: Assignment | None = None
    creates_member_id: bool = False

    @property
    def is_full(self) -> bool:
        """Return whether the member sends all values, not only changed ones. The response then contains the member's assignment (GN-27)."""
        has_subscription = self.topic_names is not None or self.topic_regex is not None
        return self.rebalance_timeout_ms != UNCHANGED_MS and has_subscription and self.owned is not None


@dataclass(slots=True)
class ConsumerHeartbeatResult:
    """The result of a ConsumerGroupHeartbeat request.

    interval_ms: the time after which the member sends the next heartbeat. assignment: the partitions that the member may read; None if the response
    does not contain them, for example because they have not changed.
    """

    error_code: int = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    interval_ms: int = 0
    assignment: Assignment | None = None


HeartbeatReply = Callable[[ConsumerHeartbeatResult, int], None]
"""A function that gets the result of a heartbeat and the current time (ms), once: when the changes are replicated or the heartbeat is rejected."""


class DescribedConsumer(NamedTuple):
    """A member in the description of a consumer group.

    topic_names, topic_regex: the topic names and the regular expression that the member subscribes to; "" for no expression. assignment: the
    partitions that it may read. target: its target assignment. is_classic: whether it uses the classic protocol.
    """

    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    topic_names: Sequence[str]
    topic_regex: str
    assignment: Assignment
    target: Assignment
    is_classic: bool = False


@dataclass(slots=True)
class ConsumerGroupDescription:
    """The description of a group in the result of ConsumerGroupDescribe."""

    group_id: str
    state: str
    epoch: int
    assignment_epoch: int
    assignor: str
    members: Sequence[DescribedConsumer] = ()


def check(request: ConsumerHeartbeat, assignors: Collection[str], *, is_release_4: bool) -> None:
    """Check the fields of a heartbeat in Kafka's order (GN-4, GN-5, GN-7).

    assignors: the names of the assignors that the broker supports. is_release_4: whether the rules of Kafka 4.0 and later apply. Raises KafkaError
    UNSUPPORTED_ASSIGNOR (112) if the request names another assignor, INVALID_REQUEST (42) if any other field is missing or invalid.
    """
    epoch = request.member_epoch
    if is_release_4:
        if not request.creates_member_id or epoch > 0 or epoch == LEAVING:
            _not_empty(request.member_id, "MemberId")
        _not_empty(request.group_id, "GroupId")
    else:
        _not_empty(request.group_id, "GroupId")
    _not_empty(request.instance_id, "InstanceId")
    _not_empty(request.rack_id, "RackId")
    if epoch > 0 or epoch == LEAVING:
        _not_empty(request.member_id, "MemberId")
    elif epoch == JOINING:
        _check_joining(request, is_release_4=is_release_4)
    elif epoch == AWAY:
        _not_empty(request.member_id, "MemberId")
        if request.instance_id is None:
            raise _invalid("InstanceId can't be null.")
    else:
        raise _invalid("MemberEpoch is invalid.")
    if request.assignor is not None and request.assignor not in assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.assignor} is not supported. Supported assignors: {', '.join(assignors)}.",
        )


def _check_joining(request: ConsumerHeartbeat, *, is_release_4: bool) -> None:
    if request.rebalance_timeout_ms == UNCHANGED_MS:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    if request.owned is None or request.owned != NOTHING:
        raise _invalid("TopicPartitions must be empty when (re-)joining.")
    if is_release_4:
        if request.topic_names is None and request.topic_regex is None:
            raise _invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
    elif not request.topic_names:
        raise _invalid("SubscribedTopicNames must be set in first request.")


def _not_empty(text: str | None, request_field: str) -> None:
    if text is not None and not java_trim(text):
        raise _invalid(f"{request_field} can't be empty.")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
