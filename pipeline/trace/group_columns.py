"""Rows of the tables `groups` and `group_offsets`: the contents of group members' requests and of their responses.

The rows of a request are made from this request and its response only. They are therefore the same whether a broker, a proxy or a packet capture
recorded the traffic. A `Row` is a dict of column names to values. In all functions,
`keys` is a `Row` with the columns that identify the request. This module does not depend on where rows are stored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from struct import Struct
from typing import Any

from kafkaproto.api import ApiKey
from kafkaproto.data.consumer_protocol_assignment import ConsumerProtocolAssignment
from kafkaproto.data.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafkaproto.errors import ProtocolError
from kafkaproto.pipeline.trace.columns import NO_TOPIC_ID, Row, empty_row, topic_columns
from kafkaproto.structs import Whole

CONSUMER = "consumer"
"""The protocol type of consumers; members of other types, such as Connect's workers, do not own partitions."""
_VERSION = Struct(">h")

PartitionsByTopic = dict[str, list[int]]


def _embedded(kind: type[Whole], data: bytes) -> Any:
    """Decode a subscription or an assignment, which requests contain as bytes. Returns None if it cannot be decoded.

    kind: the class of the structure in the bytes. If the version in the bytes is newer than the newest known one, the bytes are decoded in the newest
    known version, as clients do.
    """
    if len(data) < _VERSION.size:
        return None
    version = _VERSION.unpack_from(data)[0]
    if version < 0:
        return None
    try:
        return kind.layout(min(version, max(kind.layouts))).decode_flat(memoryview(data), _VERSION.size, len(data))[0]
    except ProtocolError:
        return None


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, separators=(",", ":"))


def _by_name(topics: Iterable[Any]) -> PartitionsByTopic:
    return {topic.topic: sorted(topic.partitions) for topic in topics}


def _by_id(topics: Iterable[Any]) -> PartitionsByTopic:
    return {topic.topic_id.hex(): sorted(topic.partitions) for topic in topics}


def _row(keys: Row, **fields: Any) -> tuple[str, Row]:
    return "groups", {**empty_row("groups"), "position": 0, **keys, **fields}


# ---- requests of members -----------------------------------------------------------------------------------------------------


def _join_group(keys: Row, request: Any, response: Any) -> Iterator[tuple[str, Row]]:
    subscription = None
    if request.protocol_type == CONSUMER and request.protocols:
        subscription = _embedded(ConsumerProtocolSubscription, request.protocols[0].metadata)
    fields = {
        "group_id": request.group_id,
        "member_id": request.member_id or None,
        "instance_id": request.group_instance_id,
        "protocol_type": request.protocol_type or None,
        "assignors": _json([protocol.name for protocol in request.protocols]),
        "session_timeout_ms": request.session_timeout_ms,
        "rebalance_timeout_ms": request.rebalance_timeout_ms if request.rebalance_timeout_ms >= 0 else None,
        "reason": request.reason or None,
    }
    if subscription is not None:
        fields |= {
            "subscribed": _json(sorted(subscription.topics)),
            "owned": _json(_by_name(subscription.owned_partitions)),
        }
    if response is not None:
        fields |= {
            "member_id": response.member_id or request.member_id or None,
            "error": response.error_code,
            "returned_epoch": response.generation_id if response.error_code == 0 else None,
            "assignor": response.protocol_name or None,
            "leader": response.leader or None,
            "members": len(response.members) or None,
        }
    yield _row(keys, **fields)


def _sync_group(keys: Row, request: Any, response: Any) -> Iterator[tuple[str, Row]]:
    fields = {
        "group_id": request.group_id,
        "member_id": request.member_id or None,
        "instance_id": request.group_instance_id,
        "protocol_type": request.protocol_type,
        "assignor": request.protocol_name,
        "requested_epoch": request.generation_id,
    }
    if response is not None:
        fields["error"] = response.error_code
        if response.error_code == 0:
            fields["returned_epoch"] = request.generation_id
            if request.protocol_type in (None, CONSUMER):
                assignment = _embedded(ConsumerProtocolAssignment, response.assignment)
                if assignment is not None:
                    fields["assigned"] = _json(_by_name(assignment.assigned_partitions))
                elif not response.assignment:  # the leader assigned nothing to this member
                    fields["assigned"] = _json({})
    yield _row(keys, **fields)


def _heartbeat(keys: Row, request: Any, response: Any) -> Iterator[tuple[str, Row]]:
    yield _row(
        keys,
        group_id=request.group_id,
        member_id=request.member_id or None,
        instance_id=request.group_instance_id,
        requested_epoch=request.generation_id,
        error=None if response is None else response.error_code,
    )


def _leave_group(keys: Row, request: Any, response: Any) -> Iterator[tuple[str, Row]]:
    """Yield ("groups", row) for each member that leaves. From version 3 on, the row has the member's own error code from the response.

    keys: maps the columns that identify the request to their values, which each row gets. response: None if the trace lacks the response.
    """
    if not request.members:
        error = None if response is None else response.error_code
        yield _row(keys, group_id=request.group_id, member_id=request.member_id or None, error=error)
        return
    results = [] if response is None else response.members
    for position, member in enumerate(request.members):
        error = None if response is None else response.error_code
        if error == 0 and position < len(results):
            error = results[position].error_code
        yield _row(
            keys | {"position": position},
            group_id=request.group_id,
            member_id=member.member_id or None,
            instance_id=member.group_instance_id,
            reason=member.reason or None,
            error=error,
        )


def _consumer_group_heartbeat(keys: Row, request: Any, response: Any) -> Iterator[tuple[str, Row]]:
    names = request.subscribed_topic_names
    fields = {
        "group_id": request.group_id,
        "member_id": request.member_id or None,
        "instance_id": request.instance_id,
        "protocol_type": CONSUMER,
        "assignor": request.server_assignor,
        "requested_epoch": request.member_epoch,
        "rebalance_timeout_ms": request.rebalance_timeout_ms if request.rebalance_timeout_ms >= 0 else None,
        "subscribed": None if names is None else _json(sorted(names)),
        "subscribed_pattern": request.subscribed_topic_regex,
        "owned": None if request.topic_partitions is None else _json(_by_id(request.topic_partitions)),
    }
    if response is not None:
        assignment = response.assignment
        fields |= {
            "member_id": response.member_id or request.member_id or None,
            "error": response.error_code,
            "returned_epoch": response.member_epoch if response.error_code == 0 else None,
            "assigned": None if assignment is None else _json(_by_id(assignment.topic_partitions)),
        }
    yield _row(keys, **fields)


def _delete_groups(keys: Row, request: Any, response: Any) -> Iterator[tuple[str, Row]]:
    errors = {} if response is None else {result.group_id: result.error_code for result in response.results}
    for position, group_id in enumerate(request.groups_names):
        yield _row(keys | {"position": position}, group_id=group_id, error=errors.get(group_id))


# ---- committed offsets -------------------------------------------------------------------------------------------------------


def _offset_row(keys: Row, position: int, topic: Any, partition: int, **fields: Any) -> tuple[str, Row]:
    row = {**empty_row("group_offsets"), **keys, "position": position, "partition": partition}
    return "group_offsets", row | topic_columns(topic.name, getattr(topic, "topic_id", NO_TOPIC_ID)) | fields


def _commit(keys: Row, request: Any, response: Any) -> Iterator[tuple[str, Row]]:
    errors = {
        (topic.name, getattr(topic, "topic_id", NO_TOPIC_ID), partition.partition_index): partition.error_code
        for topic in (() if response is None else response.topics)
        for partition in topic.partitions
    }
    is_transactional = hasattr(request, "producer_id")
    epoch = request.generation_id if is_transactional else request.generation_id_or_member_epoch
    member = {
        "group_id": request.group_id,
        "member_id": request.member_id or None,
        "instance_id": request.group_instance_id,
        "requested_epoch": epoch,
    }
    position = 0
    for topic in request.topics:
        for partition in topic.partitions:
            key = topic.name, getattr(topic, "topic_id", NO_TOPIC_ID), partition.partition_index
            yield _offset_row(
                keys | member,
                position,
                topic,
                partition.partition_index,
                offset=partition.committed_offset,
                leader_epoch=partition.committed_leader_epoch,
                error=errors.get(key),
            )
            position += 1


def _offset_fetch(keys: Row, request: Any, response: Any) -> Iterator[tuple[str, Row]]:
    """Yield ("group_offsets", row) for each partition in the response.

    Without a response, nothing is yielded: a client may request all partitions of a group, and then only the response names the partitions.

    keys: maps the columns that identify the request to their values, which each row gets.
    """
    if response is None:
        return
    members = {group.group_id: (group.member_id or None, group.member_epoch) for group in request.groups}
    results = response.groups or [response]
    position = 0
    for group in results:
        group_id = getattr(group, "group_id", request.group_id)
        member_id, epoch = members.get(group_id, (None, None))
        member = {"group_id": group_id, "member_id": member_id, "requested_epoch": epoch}
        for topic in group.topics:
            for partition in topic.partitions:
                yield _offset_row(
                    keys | member,
                    position,
                    topic,
                    partition.partition_index,
                    offset=partition.committed_offset if partition.committed_offset >= 0 else None,
                    leader_epoch=partition.committed_leader_epoch,
                    error=group.error_code or partition.error_code,
                )
                position += 1


def _offset_delete(keys: Row, request: Any, response: Any) -> Iterator[tuple[str, Row]]:
    errors = {
        (topic.name, partition.partition_index): partition.error_code
        for topic in (() if response is None else response.topics)
        for partition in topic.partitions
    }
    of_group = None if response is None else response.error_code
    places = [(topic, partition.partition_index) for topic in request.topics for partition in topic.partitions]
    for position, (topic, index) in enumerate(places):
        error = of_group or errors.get((topic.name, index), of_group)
        yield _offset_row(keys | {"group_id": request.group_id}, position, topic, index, error=error)


GROUP_ROWS: dict[int, Callable[[Row, Any, Any], Iterator[tuple[str, Row]]]] = {
    ApiKey.JOIN_GROUP: _join_group,
    ApiKey.SYNC_GROUP: _sync_group,
    ApiKey.HEARTBEAT: _heartbeat,
    ApiKey.LEAVE_GROUP: _leave_group,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _consumer_group_heartbeat,
    ApiKey.DELETE_GROUPS: _delete_groups,
    ApiKey.OFFSET_COMMIT: _commit,
    ApiKey.TXN_OFFSET_COMMIT: _commit,
    ApiKey.OFFSET_FETCH: _offset_fetch,
    ApiKey.OFFSET_DELETE: _offset_delete,
}
"""Maps the key of an API of groups to a function of (keys, request, response) that yields the table rows of a request.

keys: maps the columns that identify the request, such as run and seq, to their values, which each row gets. request, response: the decoded
messages; response is None if the trace lacks the response. The function yields (table name, row); a row is a dict of column names to values.
"""
