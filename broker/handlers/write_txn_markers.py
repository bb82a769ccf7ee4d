"""WriteTxnMarkers (key 27, versions 0-2): append the markers that end transactions to partitions that this broker leads.

v1 is flexible; v2 adds the transaction version of the producer.
Behaviour: brokers send this request, and so do tools that abort hanging transactions (KIP-664). The response is sent when all markers are replicated
(TX-47, TX-48). No client quota applies.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from kafkaproto.api import ApiKey
from kafkaproto.broker.requests.delayed import Delayed
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Charge, Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.broker.transaction.operations import PartitionKey, TransactionMarker
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

NONE = -1

Results = list[dict[PartitionKey, int]]
"""Results by marker: for each marker of the request a dict that maps partitions to error codes."""


def _failed(exchange: Exchange, request: WriteTxnMarkersRequest, error_code: int) -> Reply:
    """Return the response to a request that fails as a whole. As in Kafka, the response lists only the last marker of each producer id."""
    markers = zip(request.markers, _keys(request), strict=True)
    return _reply({marker.producer_id: dict.fromkeys(keys, int(error_code)) for marker, keys in markers})


@register(ApiKey.WRITE_TXN_MARKERS, _failed)
def write_txn_markers(exchange: Exchange, request: WriteTxnMarkersRequest) -> Reply | Delayed:
    keys = _keys(request)
    unwritten = {(place, key) for place, partitions in enumerate(keys) for key in partitions}
    results: Results = [{} for _ in keys]
    completed: list[int] = []  # the places of markers whose partitions all have results
    delayed = Delayed()

    def written(place: int, key: PartitionKey, error_code: int, at_ms: int) -> None:
        results[place][key] = int(error_code)
        unwritten.discard((place, key))
        if len(results[place]) == len(keys[place]):
            completed.append(place)
        if not unwritten:
            delayed.complete(lambda: _response(request, results, completed), at_ms)

    if not unwritten:
        return _response(request, results, completed)
    node = exchange.node
    markers = node.transactions.markers
    for place, (marker, partitions) in enumerate(zip(request.markers, keys, strict=True)):
        is_invalid = NONE in (marker.producer_id, marker.producer_epoch)
        if is_invalid and any(node.replicas.find(*key) is not None for key in partitions):
            # Kafka cannot build this marker, and has already written those before it (TX-48)
            return _failed(exchange, request, ErrorCode.UNKNOWN_SERVER_ERROR)
        transaction_marker = TransactionMarker(
            marker.producer_id,
            marker.producer_epoch,
            marker.transaction_result,
            marker.coordinator_epoch,
            marker.transaction_version,
        )
        for key in partitions:
            markers.write(transaction_marker, key, exchange.now_ms, partial(written, place, key))
    return delayed


def _keys(request: WriteTxnMarkersRequest) -> list[list[PartitionKey]]:
    return [
        list(dict.fromkeys((topic.name, index) for topic in marker.topics for index in topic.partition_indexes))
        for marker in request.markers
    ]


def _response(request: WriteTxnMarkersRequest, results: Results, completed: Sequence[int]) -> Reply:
    """Return the response, with one result for each producer id. As in Kafka, a producer id without partitions has no result (TX-47).

    results: the error codes of the partitions of each marker. completed: the indexes (in the request) of the markers that have partitions, in the
    order in which the markers were completed. A marker is completed when its last partition has a result. If several markers of a producer id name
    the same partition, the result of the marker that was completed last counts.
    """
    by_producer: dict[int, dict[PartitionKey, int]] = {
        marker.producer_id: {} for marker, errors in zip(request.markers, results, strict=True) if errors
    }
    for place in completed:
        by_producer[request.markers[place].producer_id].update(results[place])
    return _reply(by_producer)


def _reply(by_producer: dict[int, dict[PartitionKey, int]]) -> Reply:
    markers = []
    for producer_id, errors in by_producer.items():
        topics: dict[str, list[WritableTxnMarkerPartitionResult]] = {}
        for (name, index), error_code in errors.items():
            topics.setdefault(name, []).append(WritableTxnMarkerPartitionResult(index, error_code))
        topic_results = [WritableTxnMarkerTopicResult(name, partitions) for name, partitions in topics.items()]
        markers.append(WritableTxnMarkerResult(producer_id, topic_results))
    return Reply(WriteTxnMarkersResponse(markers), Charge.EXEMPT)
