"""Play a conversation about transactions on a subject, and return the responses without parts that depend on time or on the subject.

Producer ids and names are shown by their order of appearance. After a step that may end a transaction the player waits until it has ended.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from kafkaproto.conformance.groups import Group
from kafkaproto.conformance.scene import Topic, list_offsets, new_topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.transaction_log import logged
from kafkaproto.conformance.transactions import Producer
from kafkaproto.conformance.wire import batch, fetch, produce
from kafkaproto.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafkaproto.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kafkaproto.messages.describe_producers import DescribeProducersRequest, TopicRequest
from kafkaproto.messages.end_txn import EndTxnRequest
from kafkaproto.messages.init_producer_id import InitProducerIdRequest
from kafkaproto.messages.list_transactions import ListTransactionsRequest
from kafkaproto.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kafkaproto.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from kafkaproto.records import entries
from kafkaproto.records.batch import TRANSACTIONAL, BatchHeader
from tests.differential.conversations import PARTITIONS, PRODUCERS, Step
from tests.differential.odd_transactions import OddRequests
from tests.differential.texts import shown

TIMEOUT_MS = 60_000
GROUP_PARTITION = 1
"""The partition of the offsets topic that has the group: on all subjects the same, and another one than that of a group without a name."""
ENDED_MS, PAUSE_MS = 1000, 20
NO_IDS = 14
RETRIED = {14, 15, 16, 19}
"""Errors of a coordinator or a partition that is not ready yet; such a request is repeated."""
PRODUCED_MS = 1_600_000_000_000
LEFT_OUT = {"throttle_time_ms", "unknown_tagged_fields"}
"""Fields that are not compared: time, and tagged fields, of which none are known."""
PRODUCER_ID = re.compile(r"(?i)\b(producer(?: ?id)?[ =:]+)(\d+)")
"""A producer id in a text."""
PRODUCER_IDS = {"producer_id", "previous_producer_id", "next_producer_id"}
TIMES = {
    "transaction_start_time_ms",
    "last_timestamp",
    "log_append_time_ms",
    "transaction_last_update_timestamp_ms",
    "transaction_start_timestamp_ms",
}
"""Fields of which only the sign is compared."""


class TransactionPlayer:
    """A conversation on one subject, with a topic, a group and two producers of its own."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.topic: Topic = new_topic(subject, PARTITIONS)
        self.group = Group(subject, GROUP_PARTITION)
        self.producers = [Producer(subject) for _ in range(PRODUCERS)]
        self.sequences: dict[tuple[int, int, int, int], int] = {}
        self._shown: dict[int, str] = {}
        self._names = {self.topic.name: "topic", self.group.id: "group"}
        for producer in self.producers:
            producer.init()
        self._names |= {producer.id: f"producer {i}" for i, producer in enumerate(self.producers)}
        self._odd = OddRequests(self)

    def answered(self, step: Step) -> Any:
        kind, arguments = step
        if kind.startswith("odd_"):
            response = self._odd.answered(kind, arguments)
        else:
            response = self.plain(getattr(self, f"_{kind}")(**arguments))
        if kind.removeprefix("odd_") in ("init", "end", "markers"):
            self._settle()
        return response

    def _settle(self) -> None:
        """Wait until no transaction is ending, or for `ENDED_MS`: a transaction whose marker is fenced does not end (TX-49)."""
        for producer in self.producers:
            for _ in range(ENDED_MS // PAUSE_MS):
                if not producer.describe().transaction_state.startswith("Prepare"):
                    break
                self.subject.pass_ms(PAUSE_MS)

    def known_as(self, shown: str, name: str) -> str:
        """Return a name that only this subject has, after noting how responses show it."""
        self._names[name] = shown
        return name

    def _ids(self, producer: int, ids: str) -> tuple[int, int]:
        own, other = self.producers[producer], self.producers[1 - producer]
        return {
            "none": (-1, -1),
            "own": (own.producer_id, own.epoch),
            "older epoch": (own.producer_id, max(0, own.epoch - 1)),
            "two older": (own.producer_id, max(0, own.epoch - 2)),
            "newer epoch": (own.producer_id, own.epoch + 1),
            "wrong id": (own.producer_id + 100_000, own.epoch),
            "other": (other.producer_id, other.epoch),
        }[ids]

    def learn(self, producer: int, answer: Any) -> None:
        if answer.error_code == 0 and answer.producer_id >= 0:
            self.producers[producer].producer_id, self.producers[producer].epoch = (
                answer.producer_id,
                answer.producer_epoch,
            )

    def _response_to(self, producer: int, request: Any, version: int) -> Any:
        return self.producers[producer].ask(request, version)

    # ---- steps ---------------------------------------------------------------------------------------------------------------

    def _init(self, producer: int, version: int, ids: str) -> Any:
        name = self.producers[producer].id
        request = InitProducerIdRequest(name, TIMEOUT_MS, *self._ids(producer, ids if version >= 3 else "none"))
        while (response := self._response_to(producer, request, version)).error_code == NO_IDS:
            self.subject.pass_ms(50)
        self.learn(producer, response)
        return response

    def _add(self, producer: int, ids: str, version: int, partitions: list[int]) -> Any:
        topics = [AddPartitionsToTxnTopic(self.topic.name, partitions)]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.producers[producer].id, v3_and_below_topics=topics
        )
        request.v3_and_below_producer_id, request.v3_and_below_producer_epoch = self._ids(producer, ids)
        return self._sorted(self._response_to(producer, request, version).results_by_topic_v3_and_below)

    def _verify(self, producer: int, ids: str, version: int, partitions: list[int], only: bool) -> Any:
        topics = [AddPartitionsToTxnTopic(self.topic.name, partitions)]
        transaction = AddPartitionsToTxnTransaction(
            self.producers[producer].id, *self._ids(producer, ids), only, topics
        )
        response = self._response_to(producer, AddPartitionsToTxnRequest([transaction]), version)
        return response.error_code, [self._sorted(t.topic_results) for t in response.results_by_transaction]

    def _sorted(self, topics: Any) -> Any:
        return sorted((p.partition_index, p.partition_error_code) for t in topics for p in t.results_by_partition)

    def _produce(
        self, producer: int, ids: str, version: int, partition: int, sequence: str, transactional: bool
    ) -> Any:
        number, epoch = self._ids(producer, ids)
        key = (producer, number, epoch, partition)
        following = self.sequences.get(key, 0)
        base = {"next": following, "zero": 0, "again": max(0, following - 1), "gap": following + 2}[sequence]
        data = batch(
            b"v",
            timestamp=PRODUCED_MS,
            producer_id=number,
            producer_epoch=epoch,
            base_sequence=base,
            attributes=TRANSACTIONAL if transactional else 0,
        )
        request = produce(self.topic.name, data, partition, acks=-1)
        if transactional:
            request.transactional_id = self.producers[producer].id
        response = self._produced(request, version)
        if response.error_code == 0 and sequence in ("next", "zero"):
            self.sequences[key] = base + 1
        return self.partition_result(response)

    def _produced(self, request: Any, version: int) -> Any:
        """Return the result of a Produce request, repeated for up to `ENDED_MS` while the coordinator is not ready or a transaction does not end."""
        for _ in range(ENDED_MS // PAUSE_MS):
            response = self.subject.ask_once(request, version, self.topic.leader()).responses[0].partition_responses[0]
            if response.error_code not in RETRIED:
                break
            self.subject.pass_ms(PAUSE_MS)
        return response

    def _end(self, producer: int, ids: str, version: int, commit: bool) -> Any:
        request = EndTxnRequest(self.producers[producer].id, *self._ids(producer, ids), commit)
        response = self._response_to(producer, request, version)
        self.learn(producer, response)
        return response

    def _add_offsets(self, producer: int, ids: str, version: int) -> Any:
        request = AddOffsetsToTxnRequest(self.producers[producer].id, *self._ids(producer, ids), self.group.id)
        return self._response_to(producer, request, version)

    def _commit_offsets(
        self, producer: int, ids: str, version: int, partition: int, offset: int, generation: int
    ) -> Any:
        topics = [TxnOffsetCommitRequestTopic(self.topic.name, [TxnOffsetCommitRequestPartition(partition, offset)])]
        request = TxnOffsetCommitRequest(self.producers[producer].id, self.group.id, topics=topics)
        request.producer_id, request.producer_epoch = self._ids(producer, ids)
        if version >= 3:
            request.generation_id = generation
        return self.group.ask(request, version)

    def _fetch(self, version: int, partition: int, offset: int, isolation: int) -> Any:
        request = fetch((self.topic.name, partition, offset), isolation=isolation, min_bytes=0, max_wait_ms=0)
        data = self.subject.ask_once(request, version, self.topic.leader()).responses[0].partitions[0]
        aborted = data.aborted_transactions
        listed = None if aborted is None else [(self.number(a.producer_id), a.first_offset) for a in aborted]
        batches = [self._batch(entry.header) for entry in entries.batches(bytes(data.records or b""))]
        return data.error_code, data.high_watermark, data.last_stable_offset, listed, batches

    def _batch(self, header: Any) -> tuple[Any, ...]:
        assert isinstance(header, BatchHeader)
        producer = self.number(header.producer_id), header.producer_epoch, header.base_sequence
        return header.base_offset, header.record_count, header.attributes, *producer

    def _latest(self, partition: int, isolation: int) -> Any:
        listed = list_offsets(self.topic, -1, index=partition, isolation=isolation)
        return listed.error_code, listed.offset

    def _offsets(self, stable: bool, all: bool) -> Any:
        named = None if all else {self.topic.name: list(range(PARTITIONS))}
        group = self.group.fetch(named, require_stable=stable)
        offsets = [(p.partition_index, p.error_code, p.committed_offset) for t in group.topics for p in t.partitions]
        return group.error_code, sorted(offsets)

    def _describe(self) -> Any:
        states = []
        for producer in self.producers:
            state = producer.describe()
            topics = {t.topic: sorted(t.partitions) for t in state.topics}
            own = topics.get(self.topic.name), "__consumer_offsets" in topics
            started = state.transaction_start_time_ms > 0
            numbers = self.number(state.producer_id), state.producer_epoch
            states.append((state.error_code, state.transaction_state, started, *numbers, *own))
        request = DescribeProducersRequest([TopicRequest(self.topic.name, list(range(PARTITIONS + 1)))])
        topic = self.subject.ask_once(request, 0, self.topic.leader()).topics[0]
        producers = sorted(
            (
                p.partition_index,
                p.error_code,
                self.plain(p.error_message),
                sorted(
                    (self.number(s.producer_id), s.producer_epoch, s.last_sequence, s.coordinator_epoch, s.current_txn_start_offset)
                    for s in p.active_producers
                ),
            )
            for p in topic.partitions
        )  # fmt: skip
        return states, producers

    def _list(self, version: int, states: list[str], own_ids: bool) -> Any:
        result = []
        for producer in self.producers:
            ids = [producer.producer_id] if own_ids else []
            response = producer.ask(ListTransactionsRequest(states, ids), version)
            listed = [s.transaction_state for s in response.transaction_states if s.transactional_id == producer.id]
            result.append((response.error_code, response.unknown_state_filters, listed))
        return result

    def _markers(self, producer: int, ids: str, partition: int, commit: bool, coordinator_epoch: int) -> Any:
        topics = [WritableTxnMarkerTopic(self.topic.name, [partition])]
        marker = WritableTxnMarker(*self._ids(producer, ids), commit, topics, coordinator_epoch)
        response = self.subject.ask_once(WriteTxnMarkersRequest([marker]), 1, self.topic.leader())
        return [p.error_code for m in response.markers for t in m.topics for p in t.partitions]

    # ---- what is compared --------------------------------------------------------------------------------------------------------

    def number(self, producer_id: int) -> str:
        """Return the producer id as its place in the order of appearance, relative to the producers of this conversation."""
        if producer_id < 0:
            return "none"
        return self._shown.setdefault(producer_id, f"id {len(self._shown)}")

    def partition_result(self, response: Any) -> Any:
        """Return the part of a Produce response about one partition that is compared. The log conversations compare the leader and the time."""
        errors = [(error.batch_index, self.plain(error.batch_index_error_message)) for error in response.record_errors]
        return response.error_code, response.base_offset, self.plain(response.error_message), errors

    def _records(self) -> Any:
        """Return (version, value) of each record that the coordinators have written for the producers."""
        return [[(entry.version, self.plain(entry.value)) for entry in logged(producer)] for producer in self.producers]

    def plain(self, value: Any) -> Any:
        if is_dataclass(value):
            return {f.name: part for f in fields(value) for part in self._of_field(f.name, getattr(value, f.name))}
        if isinstance(value, list):
            return [self.plain(item) for item in value]
        return self._text(value) if isinstance(value, str) else value

    def _text(self, value: str) -> str:
        return shown(PRODUCER_ID.sub(lambda match: match[1] + self.number(int(match[2])), value), self._names)

    def _of_field(self, name: str, value: Any) -> Iterator[Any]:
        if name in TIMES:
            yield "a time" if value > 0 else value
        elif name in PRODUCER_IDS:
            yield self.number(value)
        elif name == "transaction_partitions" and value is not None:  # in the order of a hash table in Kafka
            yield sorted((self.plain(listed.topic), sorted(listed.partition_ids)) for listed in value)
        elif name not in LEFT_OUT:
            yield self.plain(value)
