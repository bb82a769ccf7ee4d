"""Finds batches that a client can never fetch, because one batch is larger than the client's quota allows in a whole window (Q-14).

The client fetches the same batch again after each throttle, forever. Kafka does not report such batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kafkaproto.broker.log.files import FileRange
from kafkaproto.broker.quota.sensors import ThrottleReason
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.runtime.events import UNDELIVERABLE
from kafkaproto.frame import LeftOut

if TYPE_CHECKING:
    from kafkaproto.broker.node import Node
    from kafkaproto.messages.fetch import FetchResponse

FETCH = "Fetch"
REMEMBERED = 1000
"""The maximum number of (client id, topic, partition) tuples that a broker remembers, so that it warns of each tuple only once.

If this number is reached and another tuple is added, all earlier tuples are removed.
"""
_OFFSET_BYTES = 8


class UndeliverableBatch(NamedTuple):
    """A batch that a client can never fetch because of its quota.

    facts: the details of the event that reported the batch to observers: client, partition, size of the response and quota. topic_id,
    base_offset: the topic of the batch, and its first offset.
    """

    facts: Mapping[str, Any]
    topic_id: bytes
    base_offset: int


def report_undeliverable(exchange: Exchange, message: FetchResponse, reason: object) -> None:
    """Raise the event "undeliverable" if the response to a throttled fetch is larger than the client's quota allows in any window.

    The event is raised once for each client id and partition, and again after a quota changed. message: the response, whose records the broker
    removes before it sends the response. reason: why the client is throttled; only a throttle by the fetch quota raises the event. The event's facts
    are client_id, topic and partition (of the first records in the response), response_bytes, quota (bytes per second), largest_bytes (the largest
    response that the quota allows) and window_ms (the longest time over which the rate is measured).
    """
    node = exchange.node
    if node.events.noted is None or type(reason) is not ThrottleReason or reason.quota != FETCH:
        return
    quota = node.quotas.fetch
    largest_bytes = int(reason.bound * quota.longest_window_ms / 1000)
    if reason.value <= largest_bytes:
        return
    topic, partition, records = next(_with_records(exchange, message), ("", -1, b""))
    key = exchange.client_id, topic, partition
    is_new = key not in quota.undeliverable
    if is_new and len(quota.undeliverable) >= REMEMBERED:
        quota.undeliverable.clear()
    facts = {
        "client_id": exchange.client_id,
        "topic": topic,
        "partition": partition,
        "response_bytes": int(reason.value),
        "quota": reason.bound,
        "largest_bytes": largest_bytes,
        "window_ms": quota.longest_window_ms,
    }
    entry = node.image.topics.get(topic)
    quota.undeliverable[key] = UndeliverableBatch(facts, entry.topic_id if entry else b"", _first_offset(records))
    if is_new:
        node.events.noted(exchange.now_ms, node.broker_id, UNDELIVERABLE, facts)


def note_delivered(exchange: Exchange, message: FetchResponse) -> None:
    """Record that a client has received records: batches reported as undeliverable in these partitions no longer count as undeliverable.

    exchange: the Fetch request. message: the response, which is sent with its records. Later batches of these partitions cause no new warning.
    """
    undeliverable = exchange.node.quotas.fetch.undeliverable
    for topic, partition, _ in _with_records(exchange, message):
        key = exchange.client_id, topic, partition
        if key in undeliverable:
            undeliverable[key] = None


def undeliverable_now(node: Node) -> Iterator[Mapping[str, Any]]:
    """Yield the details of each batch that a client of one broker still cannot fetch, as the event "undeliverable" reported them.

    Omits batches that were deleted, batches that were reported before a quota changed, and batches of partitions that the client has fetched since.
    """
    for batch in node.quotas.fetch.undeliverable.values():
        if batch is not None and _is_in_the_log(node, batch):
            yield batch.facts


def _is_in_the_log(node: Node, batch: UndeliverableBatch) -> bool:
    topic = node.image.topics.get(batch.facts["topic"])
    if topic is None or topic.topic_id != batch.topic_id:
        return False
    replica = node.replicas.find(topic.name, batch.facts["partition"])
    if replica is None:
        return False
    log = replica.log
    first = next(log.batches(max(batch.base_offset, log.log_start_offset)), None)
    return first is not None and first[1].base_offset == batch.base_offset


def _with_records(exchange: Exchange, message: FetchResponse) -> Iterator[tuple[str, int, Any]]:
    """Yield (topic name, partition, records) for each partition of the response, except partitions without records."""
    names = exchange.node.image.topic_names
    for topic in message.responses:
        for partition in topic.partitions:
            if partition.records:
                yield topic.topic or names.get(topic.topic_id, ""), partition.partition_index, partition.records


def _first_offset(records: Any) -> int:
    """Return the base offset of the first batch in the records of a fetch response. records: bytes, or a range of a log's file."""
    if isinstance(records, LeftOut):
        records = records.records
    if isinstance(records, FileRange):
        records = FileRange(records.file, records.offset, min(len(records), _OFFSET_BYTES)).read()
    return int.from_bytes(records[:_OFFSET_BYTES], "big")
