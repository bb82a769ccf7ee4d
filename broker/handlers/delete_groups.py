"""DeleteGroups (key 42, versions 0-2): delete groups without members, with their committed offsets.

v1 changes no layout; v2 is flexible.
Behaviour: a group with members gets error NON_EMPTY_GROUP. A group that the request names twice is deleted once and has one result (GC-59). GO-36
describes the order of results.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from kafkaproto.api import ApiKey
from kafkaproto.broker.requests.delayed import Delayed
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.group_partitions import ids_by_partition
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.hash_order import copy_order, hash_order, scala_map_order, scala_table_order
from kafkaproto.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from kafkaproto.partitioner import java_hash_bits

if TYPE_CHECKING:
    from kafkaproto.broker.node import Node


def _failed(exchange: Exchange, request: DeleteGroupsRequest, error_code: int) -> Reply:
    return _response(dict.fromkeys(request.groups_names, error_code))


@register(ApiKey.DELETE_GROUPS, _failed)
def delete_groups(exchange: Exchange, request: DeleteGroupsRequest) -> Delayed:
    node = exchange.node
    results = {group_id: node.refuses_group(group_id) for group_id in request.groups_names}
    own = [group_id for group_id in _deletion_order(node, list(results)) if not results[group_id]]
    refused = results.keys() - own
    delayed = Delayed()

    def reply(errors: dict[str, int], at_ms: int) -> None:
        delayed.complete(lambda: _response(_in_kafkas_order(node, results | errors, refused)), at_ms)

    node.groups.commits.delete_groups(own, exchange.now_ms, reply)
    return delayed


def _deletion_order(node: Node, group_ids: list[str]) -> list[str]:
    """Return group ids in the order in which Kafka's group coordinator deletes the groups, as their tombstones show (GO-9).

    With the coordinator in Scala, it is the order of an immutable Scala `Set` of all ids in the request. With the one in Java, it is the order of the
    request before Kafka 4.1, and that of the response from 4.1 on. group_ids: the ids in the order of the request, also those of groups that
    other brokers coordinate.
    """
    if not node.groups.is_new_coordinator:
        return scala_map_order(group_ids, java_hash_bits)
    if not node.groups.is_release_4_1:
        return group_ids
    return [group_id for ids in ids_by_partition(node, group_ids) for group_id in copy_order(ids)]


def _in_kafkas_order(node: Node, results: dict[str, int], refused: Collection[str]) -> dict[str, int]:
    """Return the results in the order in which Kafka's group coordinator returns them: that of its hash tables (GO-36).

    The coordinator in Java groups the results by partition of `__consumer_offsets`. The coordinator in Scala has one table of all groups, to which it
    first adds the groups with an error and then the deleted groups. refused: the groups that this broker does not coordinate.
    """
    if node.groups.is_new_coordinator:
        partitions = ids_by_partition(node, results)
        # Kafka 4.1 deletes share groups first, and collects the remaining groups of a partition in a set.
        if node.groups.is_release_4_1:
            partitions = [hash_order(ids) if ids[0] in refused else copy_order(ids) for ids in partitions]
        group_ids = [group_id for ids in partitions for group_id in ids]
    else:
        group_ids = scala_table_order(sorted(results, key=lambda group_id: not results[group_id]), java_hash_bits)
    return {group_id: results[group_id] for group_id in group_ids}


def _response(results: dict[str, int]) -> Reply:
    return Reply(
        DeleteGroupsResponse(
            results=[DeletableGroupResult(group_id, int(error)) for group_id, error in results.items()]
        )
    )
