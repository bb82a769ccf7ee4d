"""The journal as a topic: publishes throttles, the offsets that clients reach, and leader changes as records for any client. Off by default.

The topic has one partition, because all brokers of a cluster share a clock and a journal: its records are in the order of the events. It has up to
three replicas, so that it stays available when its leader stops. While the journal topic is off, it has almost no cost per request. This module
does not depend on sockets. Of the content of messages, it uses only the topics that they name.

A record's timestamp is the broker's clock. Its key is the client id, or `broker-N` if there is no client. Its value is JSON with
`v` (1), `kind`, `at_ms`, `broker`, and further fields that depend on the kind:

throttle: client_id, api, throttle_ms, held, quota, entity, bound, value, rate, window_ms
fetched:  client_id, topic, partition, next_offset (the next offset that the client reads), high_watermark (in the response to the client)
behind:   the fields of `fetched`, for a connected client that lags: it has not fetched the partition since records were produced
produced: client_id, topic, partition, end_offset (the offset after the last record of the request)
leader:   topic, partition, leader, leader_epoch
isr:      topic, partition, isr
broker:   state (stopped, started)
dropped:  count (how many entries were dropped since the last record of kind `dropped`: too many were waiting, or an append failed)

The fields of the kind `throttle`, of which the last six are null for a forced throttle:

- held: whether the response was delayed instead of muting the connection.
- quota: the type of the exceeded quota, such as "Produce". entity: the clients for which the quota is set. bound: the limit.
- value: the last recorded value. rate: the rate measured over `window_ms`.

A connection that names the journal topic in a request becomes a reader: from then on none of its actions is published, because reading
the journal would otherwise make it grow.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.log.errors import InvalidBatch, StorageError
from kafkaproto.broker.metadata.image import NO_LEADER
from kafkaproto.broker.observe.journal import throttle_of
from kafkaproto.broker.runtime.events import Observer
from kafkaproto.records.batch import NewRecord, build_batch

if TYPE_CHECKING:
    from kafkaproto.broker.fetch.read import PartitionFetch, PartitionRead
    from kafkaproto.broker.metadata.controller import Controller
    from kafkaproto.broker.nodes import Nodes
    from kafkaproto.broker.requests.exchange import Exchange, Peer
    from kafkaproto.broker.runtime.timers import Timer, Timers

DEFAULT_TOPIC = "__journal"
VERSION = 1
EVERY_MS = 100
"""The time in milliseconds for which journal entries are collected before they are appended together to the journal topic."""
MOST_WAITING = 10_000
"""The maximum number of journal entries that wait to be appended to the topic; further entries are counted and dropped."""
BATCH_BYTES = 256 * 1024
MOST_REPLICAS = 3
PUBLISHED = ("broker", "isr", "leader")
SETTINGS = {
    "cleanup.policy": "delete",
    "max.message.bytes": str(1024 * 1024),
    "min.insync.replicas": "1",
    "retention.bytes": str(64 * 1024 * 1024),
    "retention.ms": str(10 * 60_000),
    "segment.bytes": str(8 * 1024 * 1024),
    "segment.ms": str(60_000),
}
_REASON = ("quota", "bound", "value", "rate", "window_ms")

Place = tuple[str, str | None, int, str, int]
"""Identifies an offset that a client has reached: (kind of record, client id, broker, topic, partition).

The kind is the value of the field `kind` in the record to publish, such as "fetched". If several offsets with equal tuples are collected, only the
latest is published.
"""


class Publishing(Protocol):
    """Interface of the cluster: the attributes and methods that `JournalTopic` uses to append the journal's entries to a topic."""

    @property
    def controller(self) -> Controller: ...

    @property
    def nodes(self) -> Nodes: ...

    @property
    def timers(self) -> Timers: ...


class Reached:
    """Stores the next offset that each client reads in each partition, and the client's connection; at most 10,000 such entries."""

    def __init__(self, cluster: Publishing) -> None:
        self._cluster = cluster
        self._of: dict[tuple[str, int], dict[str | None, tuple[int, int, int]]] = {}
        self._count = 0

    def note(self, topic: str, index: int, client_id: str | None, broker_id: int, connection_id: int, end: int) -> None:
        """Store, after a fetch response, how far a client has read in a partition.

        index: the partition number. broker_id: the broker that sent the response. connection_id: the connection on which it was sent. end: the offset
        after the records that the client has read. If more than 10,000 offsets are then stored, the offsets of one partition are removed for all
        clients. This is the partition whose first offset was stored earliest.
        """
        clients = self._of.setdefault((topic, index), {})
        self._count += client_id not in clients
        clients[client_id] = (broker_id, connection_id, end)
        if self._count > MOST_WAITING:
            oldest = next(iter(self._of))
            self._count -= len(self._of.pop(oldest))

    def connected(self, topic: str, index: int) -> list[tuple[str | None, int, int]]:
        """Return (client id, broker id, next offset) for each client that has read the partition and is still connected.

        The client id is None if the client sends none. The next offset is the offset after the records that the client has read.
        """
        clients = self._of.get((topic, index), {})
        for client_id, (broker_id, connection_id, _) in list(clients.items()):
            if connection_id not in self._cluster.nodes[broker_id].connections:
                del clients[client_id]
                self._count -= 1
        return [(client_id, broker_id, end) for client_id, (broker_id, _, end) in clients.items()]

    def clear(self) -> None:
        self._of.clear()
        self._count = 0


class JournalTopic(Observer):
    """Collects events of the cluster, and appends them as records to the topic `name` every 100 ms of the cluster's clock.

    Creates the topic if it is missing. The topic gets records about throttles, changed leaders and ISRs, stopped and started brokers, and the offsets
    up to which clients have read and written.

    Raises KafkaError if the topic cannot be created.
    """

    def __init__(self, cluster: Publishing, name: str = DEFAULT_TOPIC) -> None:
        self.name = name
        self.dropped = 0
        """The number of journal entries dropped so far, because 10,000 entries were waiting to be appended, or because an append failed."""
        self._cluster = cluster
        self._entries: list[tuple[str, dict[str, Any]]] = []
        self._positions: dict[Place, dict[str, Any]] = {}
        self._unreported = 0
        self._readers: set[int] = set()
        self._reached = Reached(cluster)
        self._timer: Timer | None = None
        self.begin()

    def begin(self) -> None:
        """Drop all collected journal entries, and create the journal topic if it is missing.

        Also drop the offsets that clients have reached, and the list of the connections that read the journal topic.
        """
        self._entries.clear()
        self._positions.clear()
        self._readers.clear()
        self._reached.clear()
        self._unreported = 0
        self._make()

    def _make(self) -> None:
        controller = self._cluster.controller
        if self.name not in controller.image.topics:
            replicas = min(MOST_REPLICAS, len(self._cluster.nodes))
            controller.put_topic(controller.plan_topic(self.name, 1, replicas, None, SETTINGS))

    # ---- events --------------------------------------------------------------------------------------------------------------

    def request_begun(
        self, exchange: Exchange, api: Any, frame: memoryview, body_at: int, body_end: int, request: Any
    ) -> None:
        # A connection that names this topic counts as a reader of it.
        topics = getattr(request, "topics", None) or getattr(request, "topic_data", None)
        if topics and exchange.peer.connection_id not in self._readers and self._is_named(topics):
            self._readers.add(exchange.peer.connection_id)

    def _is_named(self, topics: Sequence[Any]) -> bool:
        own = self._cluster.controller.image.topics.get(self.name)
        topic_id = None if own is None else own.topic_id
        for topic in topics:
            name = getattr(topic, "name", None) or getattr(topic, "topic", None)
            if name == self.name or (
                not name and topic_id is not None and getattr(topic, "topic_id", None) == topic_id
            ):
                return True
        return False

    def connection_closed(self, broker_id: int, connection: Peer, why: str, now_ms: int) -> None:
        self._readers.discard(connection.connection_id)

    def cleared(self, now_ms: int) -> None:
        self.begin()

    def throttled(self, exchange: Exchange, throttle_ms: int, reason: Any, held: bool) -> None:
        throttle = throttle_of(exchange, throttle_ms, reason, held)
        if throttle.connection_id in self._readers:
            return
        entity = getattr(reason, "entity", None)
        facts = {
            "client_id": throttle.client_id,
            "api": throttle.api,
            "throttle_ms": throttle.throttle_time_ms,
            "held": throttle.held,
        }
        facts |= {name: getattr(reason, name, None) for name in _REASON}
        facts["entity"] = None if entity is None else str(entity)
        self._note("throttle", throttle.at_ms, throttle.broker_id, facts)

    def noted(self, now_ms: int, broker_id: int, kind: str, facts: Mapping[str, Any]) -> None:
        # Publish changes of leaders, in-sync replicas and brokers, except those of this topic itself.
        if kind in PUBLISHED and facts.get("topic") != self.name:
            self._note(kind, now_ms, broker_id, facts)
        elif kind in PUBLISHED and self._is_waiting:
            self._arm(now_ms)  # the topic may have a leader again

    def records_read(
        self,
        exchange: Exchange,
        fetches: Sequence[PartitionFetch],
        results: Sequence[PartitionRead],
        delivered: bool,
    ) -> None:
        if exchange.peer.connection_id in self._readers:
            return
        for fetch, read in zip(fetches, results, strict=True):
            if not read.error_code:
                partition = exchange.node.replicas.find(fetch.topic, fetch.index) if delivered else None
                end = fetch.offset if partition is None else partition.log.offset_behind(fetch.offset, read.size_bytes)
                client_id, broker_id = exchange.client_id, exchange.node.broker_id
                self._reached.note(fetch.topic, fetch.index, client_id, broker_id, exchange.peer.connection_id, end)
                place = ("fetched", client_id, broker_id, fetch.topic, fetch.index)
                self._position(place, exchange.now_ms, {"next_offset": end, "high_watermark": read.high_watermark})

    def records_appended(self, exchange: Exchange, topic: str, index: int, end_offset: int) -> None:
        if exchange.peer.connection_id not in self._readers:
            place = ("produced", exchange.client_id, exchange.node.broker_id, topic, index)
            self._position(place, exchange.now_ms, {"end_offset": end_offset})

    # ---- collected entries ---------------------------------------------------------------------------------------------------

    @property
    def _is_waiting(self) -> bool:
        return bool(self._entries or self._positions or self._unreported)

    def _note(self, kind: str, at_ms: int, broker_id: int, facts: Mapping[str, Any]) -> None:
        if self._has_room(at_ms):
            key = facts.get("client_id")
            value = {"v": VERSION, "kind": kind, "at_ms": at_ms, "broker": broker_id, **facts}
            self._entries.append((key or f"broker-{broker_id}", value))

    def _position(self, place: Place, at_ms: int, offsets: dict[str, int]) -> None:
        if place not in self._positions and not self._has_room(at_ms):
            return
        kind, client_id, broker_id, topic, index = place
        facts = {"client_id": client_id, "topic": topic, "partition": index, **offsets}
        self._positions[place] = {"v": VERSION, "kind": kind, "at_ms": at_ms, "broker": broker_id, **facts}

    def _has_room(self, at_ms: int) -> bool:
        self._arm(at_ms)
        if len(self._entries) + len(self._positions) < MOST_WAITING:
            return True
        self.dropped += 1
        self._unreported += 1
        return False

    def _arm(self, at_ms: int) -> None:
        if self._timer is None:
            self._timer = self._cluster.timers.at(at_ms + EVERY_MS, self.flush)

    # ---- appends -------------------------------------------------------------------------------------------------------------

    def flush(self, now_ms: int) -> None:
        """Append the collected journal entries to the topic.

        While the topic has no leader, the entries are kept. They are appended at a later event, for example the election of a leader.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._is_waiting:
            return
        try:
            self._make()
        except KafkaError as error:
            self._cluster.nodes[self._cluster.nodes.ids[0]].complain(
                f"topic {self.name} cannot be created", error, now_ms
            )
            return
        leader, _ = self._cluster.controller.image.leader_of(self.name, 0)
        if leader == NO_LEADER:
            return
        self._note_lagging_clients(now_ms)
        for batch in _batches(self._take_records(now_ms, leader)):
            self._append(leader, batch, now_ms)

    def _note_lagging_clients(self, now_ms: int) -> None:
        places = {(value["client_id"], value["topic"], value["partition"]) for value in self._of_kind("fetched")}
        for topic, index in {(value["topic"], value["partition"]): None for value in self._of_kind("produced")}:
            leader, _ = self._cluster.controller.image.leader_of(topic, index)
            partition = None if leader == NO_LEADER else self._cluster.nodes[leader].replicas.find(topic, index)
            if partition is None:
                continue
            end = partition.log.high_watermark
            for client_id, broker_id, next_offset in self._reached.connected(topic, index):
                if next_offset < end and (client_id, topic, index) not in places:
                    offsets = {"next_offset": next_offset, "high_watermark": end}
                    self._position(("behind", client_id, broker_id, topic, index), now_ms, offsets)

    def _of_kind(self, kind: str) -> list[dict[str, Any]]:
        return [value for place, value in self._positions.items() if place[0] == kind]

    def _take_records(self, now_ms: int, leader: int) -> list[NewRecord]:
        entries = self._entries
        entries += [(value["client_id"] or f"broker-{value['broker']}", value) for value in self._positions.values()]
        # Entries of the same time keep their order, because sorting is stable: throttles before positions.
        entries.sort(key=lambda entry: int(entry[1]["at_ms"]))
        if self._unreported:
            event = {"v": VERSION, "kind": "dropped", "at_ms": now_ms, "broker": leader, "count": self._unreported}
            entries.append((f"broker-{leader}", event))
        self._entries, self._positions, self._unreported = [], {}, 0
        return [NewRecord(_json(value), key.encode(), value["at_ms"]) for key, value in entries]

    def _append(self, leader: int, batch: list[NewRecord], now_ms: int) -> None:
        node = self._cluster.nodes[leader]
        partition = node.replicas.partitions[(self.name, 0)]
        try:
            node.replicas.append(partition, memoryview(bytearray(build_batch(batch))), now_ms)
        except (InvalidBatch, StorageError) as error:
            self.dropped += len(batch)
            self._unreported += len(batch)
            node.complain(f"records of {self.name} cannot be stored", error, now_ms)


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _batches(records: Sequence[NewRecord]) -> Iterator[list[NewRecord]]:
    """Yield the records in order, split into lists of about 256 KiB each."""
    batch: list[NewRecord] = []
    size_bytes = 0
    for record in records:
        batch.append(record)
        size_bytes += len(record.value or b"") + len(record.key or b"")
        if size_bytes >= BATCH_BYTES:
            yield batch
            batch, size_bytes = [], 0
    if batch:
        yield batch
