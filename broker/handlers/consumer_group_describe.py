"""ConsumerGroupDescribe (key 69, versions 0-1): members, epochs and assignments of consumer groups of the new protocol (KIP-848).

v1 adds the type of each member.
Behaviour: each member is returned with its current and its target assignment (GN-64, GN-65). A classic or unknown group gets error GROUP_ID_NOT_FOUND
(GN-66).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafkaproto.api import ApiKey
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.group_partitions import ids_by_partition, in_partition_order
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)

if TYPE_CHECKING:
    from kafkaproto.broker.group.assignment import Assignment as Assigned
    from kafkaproto.broker.group.consumer_requests import DescribedConsumer

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1
"""The numbers for the type of a member in the response: 0 if it uses the classic protocol, 1 if it uses the new protocol (KIP-848)."""
MAX_REPEATED_RESULTS = 100_000
"""The maximum number of results in a response that repeats groups, so that a request of a few megabytes cannot fill the memory of the broker."""


def _failed(exchange: Exchange, request: ConsumerGroupDescribeRequest, error_code: int) -> Reply:
    return _response([_error(group_id, error_code) for group_id in request.group_ids])


@register(ApiKey.CONSUMER_GROUP_DESCRIBE, _failed)
def consumer_group_describe(exchange: Exchange, request: ConsumerGroupDescribeRequest) -> Reply:
    if not exchange.node.groups.serves_consumers:
        return _failed(exchange, request, ErrorCode.UNSUPPORTED_VERSION)
    if "" in request.group_ids and not exchange.node.groups.is_release_4:
        # An exception in the coordinator of 3.9 fails the whole request (GN-66).
        return _failed(exchange, request, ErrorCode.UNKNOWN_SERVER_ERROR)
    with_operations = request.include_authorized_operations
    if not exchange.node.groups.is_release_4:
        return _response(_described_by_each_partition(exchange, request.group_ids, with_operations))
    # Kafka 4 returns the results for empty group ids first.
    empty_ids = [group_id for group_id in request.group_ids if not group_id]
    group_ids = empty_ids + in_partition_order(exchange.node, filter(None, request.group_ids))
    return _response([_describe(exchange, group_id, with_operations) for group_id in group_ids])


def _described_by_each_partition(
    exchange: Exchange, group_ids: Sequence[str], with_operations: bool
) -> list[DescribedGroup]:
    """Return the results as Kafka 3.9 returns them: several partitions may return a result for the same group (GN-66).

    Kafka 3.9 passes all groups of the request to each partition of `__consumer_offsets` that stores at least one of these groups. The partition
    returns a result for each group in the request: a description of each group that it stores, and GROUP_ID_NOT_FOUND (69) for all others. If this
    broker does not coordinate the partition, there is an error for each group that the partition stores, and no result for the others. If the
    response would have more than `MAX_REPEATED_RESULTS` results, it has only one result for each group instead.
    """
    node = exchange.node
    partitions = ids_by_partition(node, group_ids)
    if len(partitions) * len(group_ids) > MAX_REPEATED_RESULTS:
        return [_describe(exchange, group_id, with_operations) for own_ids in partitions for group_id in own_ids]
    groups: list[DescribedGroup] = []
    for own_ids in partitions:
        if error := node.refuses_group(own_ids[0]):
            groups += [_error(group_id, error) for group_id in own_ids]
            continue
        own = set(own_ids)
        groups += [
            _describe(exchange, group_id, with_operations)
            if group_id in own
            else _error(group_id, ErrorCode.GROUP_ID_NOT_FOUND)
            for group_id in group_ids
        ]
    return groups


def _describe(exchange: Exchange, group_id: str, with_operations: bool) -> DescribedGroup:
    node = exchange.node
    is_invalid = not group_id and node.groups.is_release_4
    error = ErrorCode.INVALID_GROUP_ID if is_invalid else node.refuses_group(group_id)
    if error:
        return _error(group_id, error)
    try:
        description = node.groups.consumers.describe(group_id)
    except KafkaError as refusal:
        # Brokers of 3.9 send no message (GN-66).
        message = refusal.message if node.groups.is_release_4 else None
        return _error(group_id, refusal.error_code, message)
    names = {topic.topic_id: topic.name for topic in node.image.topics.values()}
    group = DescribedGroup(
        group_id=group_id,
        error_message=None,
        group_state=description.state,
        group_epoch=description.epoch,
        assignment_epoch=description.assignment_epoch,
        assignor_name=description.assignor,
        members=[_member(member, names) for member in description.members],
    )
    if with_operations:
        group.authorized_operations = node.groups.operations
    return group


def _member(member: DescribedConsumer, names: dict[bytes, str]) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        assignment=_assignment(member.assignment, names),
        target_assignment=_assignment(member.target, names),
        member_type=CLASSIC_MEMBER if member.is_classic else CONSUMER_MEMBER,
    )


def _assignment(assignment: Assigned, names: dict[bytes, str]) -> Assignment:
    """Return an assignment with topic names instead of ids. Deleted topics are left out (GN-65)."""
    return Assignment(
        [
            TopicPartitions(topic_id, names[topic_id], list(indexes))
            for topic_id, indexes in assignment.items()
            if topic_id in names
        ]
    )


def _error(group_id: str, error_code: int, message: str | None = None) -> DescribedGroup:
    return DescribedGroup(error_code=int(error_code), error_message=message, group_id=group_id)


def _response(groups: list[DescribedGroup]) -> Reply:
    return Reply(ConsumerGroupDescribeResponse(groups=groups))
