"""AddOffsetsToTxn (key 25, versions 0-4): add the offsets of a group to the transaction of a producer.

v2 returns PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH; v3 is flexible; v4 changes no layout.
Behaviour: the partition of `__consumer_offsets` that stores the group is added to the transaction, even if the topic does not exist yet (TX-24).
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.group.placement import OFFSETS_TOPIC
from kafkaproto.broker.requests.delayed import Delayed
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.broker.requests.transaction_errors import error_for
from kafkaproto.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse


def _failed(exchange: Exchange, request: AddOffsetsToTxnRequest, error_code: int) -> Reply:
    return Reply(AddOffsetsToTxnResponse(error_code=int(error_code)))


@register(ApiKey.ADD_OFFSETS_TO_TXN, _failed)
def add_offsets_to_txn(exchange: Exchange, request: AddOffsetsToTxnRequest) -> Reply | Delayed:
    node = exchange.node
    try:
        coordinator = node.transactions.find_coordinator(request.transactional_id)
    except KafkaError as error:
        return _failed(exchange, request, error.error_code)
    delayed = Delayed()

    def added(error_code: int, at_ms: int) -> None:
        error_code = error_for(exchange.api_key, exchange.api_version, error_code)
        delayed.complete(lambda: _failed(exchange, request, error_code), at_ms)

    partitions = [_offsets_partition(exchange, request.group_id)]
    coordinator.add_partitions(
        request.transactional_id, request.producer_id, request.producer_epoch, partitions, exchange.now_ms, added
    )
    return delayed


def _offsets_partition(exchange: Exchange, group_id: str) -> tuple[str, int]:
    """Return the partition of the offsets topic that stores a group, or would store it if the topic existed, as (topic, index)."""
    node = exchange.node
    return OFFSETS_TOPIC, node.groups.ownership.partition_of(group_id, node.config["offsets.topic.num.partitions"])
