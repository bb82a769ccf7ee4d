"""Play a request sequence on a subject and return the responses without parts that depend on time or on the subject.

`LEFT_OUT` and `SHOWN_AS` list the fields that are not compared, with reasons. One request is in flight at a time. After a step that changes
state, the player waits until every replica has the change (the barrier).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import Any

from kafkaproto.conformance.client import Closed, Connection
from kafkaproto.conformance.scene import Topic, new_topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.errors import DecodeError
from kafkaproto.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kafkaproto.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, ReplicaState
from kafkaproto.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafkaproto.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafkaproto.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kafkaproto.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafkaproto.records import entries
from tests.differential.batches import made
from tests.differential.request_sequences import NOBODY, PARTITIONS, RequestSequence, Step
from tests.differential.texts import id_in_texts, shown

PRODUCED_MS = 1_750_000_000_000
"""Timestamps after this one come from the broker's clock, not from a producer."""
LEFT_OUT = {
    "throttle_time_ms": "depends on time",
    "cluster_id": "random",
    "controller_id": "a KRaft broker reports a random broker",
    "port": "chosen at start",
    "host": "like the field above",
    "unknown_tagged_fields": "no tagged fields are known",
    "brokers": "tested by the conformance suite (M-5)",
    "topic_authorized_operations": "tested by the conformance suite (M-1)",
    "cluster_authorized_operations": "like the field above",
    "isr_nodes": "depends on time while a broker stops; its effects are compared in errors and high watermarks",
    "offline_replicas": "like the field above",
    "endpoints": "of KRaft",
}
SHOWN_AS: dict[str, Callable[[Any], Any]] = {
    # only whether they are 0: ids are random
    "session_id": lambda value: "a session" if value else 0,
    "topic_id": lambda value: "an id" if any(value) else 0,
    # -1, or a time of the clock
    "log_append_time_ms": lambda value: "a time" if value >= 0 else -1,
    "timestamp": lambda value: "a time" if value > PRODUCED_MS else value,
    "name": lambda value: value if value is None else NOBODY if value == NOBODY else "topic",
    "topic": lambda value: value if value is None else NOBODY if value == NOBODY else "topic" if value else "",
}
UNKNOWN_ID = b"\x07" * 16
BARRIER_ROUNDS = 400
BARRIER_MS = 5
NOT_YET = {5, 6, 78}
PATIENCE_MS = 7000
Answers = list[Any]


class Silence(Exception):
    """No response arrived in time."""


class Player:
    """A request sequence on one subject: a new topic, a connection, and at most one fetch session."""

    def __init__(self, subject: Subject, request_sequence: RequestSequence) -> None:
        self.subject = subject
        self.request_sequence = request_sequence
        brokers = list(range(request_sequence.replication))
        configs = {key.replace(".", "_"): value for key, value in request_sequence.configs.items()}
        self.topic = new_topic(subject, assignment=dict.fromkeys(range(PARTITIONS), brokers), **configs)
        self.topic_id = self.topic.topic_id
        self.leader = 0
        self.stopped: int | None = None
        self.session = (0, 0)
        self.connection = self._connect()

    def _connect(self) -> Connection:
        return self.subject.connect(self.leader, "differential")

    def play(self) -> Answers:
        try:
            self._wait_until_followed()
            return [self._answered(step) for step in self.request_sequence.steps]
        finally:
            if self.stopped is not None:
                self.subject.start_broker(self.stopped)
            self.subject.close_connections()

    def _answered(self, step: Step) -> Any:
        kind, arguments = step
        try:
            response_seen = getattr(self, f"_{kind}")(**arguments)
        except Closed:
            response_seen = self._lost("closed")
        except Silence:
            response_seen = self._lost("no answer")
        if kind in ("produce", "delete"):
            self._wait_until_replicated()
        return response_seen

    def _lost(self, how: str) -> str:
        self.connection = self._connect()
        self.session = (0, 0)
        return how

    def _ask(self, request: Any, version: int) -> Any:
        self.subject.send(self.connection, request, version)
        response = self.subject.answer_or_none(self.connection, PATIENCE_MS)
        if response is None:
            raise Silence
        return response.message

    def _plain(self, response: Any) -> Any:
        """Return a response as `plain` does, with the name and the id of the topic replaced in texts."""
        return plain(response, {self.topic.name: "topic", id_in_texts(self.topic_id): "an id"})

    def _name(self, topic: str) -> str:
        return NOBODY if topic == NOBODY else self.topic.name

    def _id(self, topic: str) -> bytes:
        return UNKNOWN_ID if topic == NOBODY else self.topic_id

    # ---- steps -----------------------------------------------------------------------------------------------------------------

    def _produce(self, topic: str, partition: int, version: int, acks: int, batch: dict[str, Any]) -> Any:
        data = PartitionProduceData(partition, made(batch))
        named = TopicProduceData(self._name(topic), self._id(topic), [data])
        request = ProduceRequest(None, acks, 5000, [named])
        if acks != 0:
            return self._plain(self._ask(request, version))
        sent = self.connection.frame(request, version)
        self.connection.send_bytes(sent)
        self.connection.sent.popitem()
        self._ask(MetadataRequest([]), 9)  # its response comes after the produce, or the connection is closed
        return "nothing"

    def _fetch(self, version: int, partitions: list[dict[str, Any]], session: str, **more: Any) -> Any:
        session_id, epoch = {
            "none": (0, -1),
            "new": (self.session[0], 0),
            "next": self.session,
            "wrong epoch": (self.session[0], self.session[1] + 3),
            "wrong id": (self.session[0] ^ 0x55, 1),
            "close": (self.session[0], -1),
        }[session]
        listed = [
            FetchTopic(
                self._name(partition["topic"]),
                self._id(partition["topic"]),
                [
                    FetchPartition(
                        partition["partition"],
                        partition["epoch"],
                        partition["offset"],
                        partition["last_epoch"] if version >= 12 else -1,
                        -1,
                        partition["max"],
                    )
                ],
            )
            for partition in partitions
        ]
        replica_id = more["replica_id"]
        request = FetchRequest(
            replica_id=replica_id if version < 15 else -1,
            replica_state=ReplicaState(replica_id) if version >= 15 else ReplicaState(),
            max_wait_ms=0,
            min_bytes=more["min_bytes"],
            max_bytes=more["max_bytes"],
            isolation_level=more["isolation"],
            session_id=session_id,
            session_epoch=epoch,
            topics=listed,
            forgotten_topics_data=[
                ForgottenTopic(self.topic.name, self.topic_id, [p]) for p in more["forgotten"] if version >= 7
            ],
            rack_id=more["rack"],
        )
        response = self._ask(request, version)
        if version >= 7:
            if response.session_id and response.error_code == 0:
                self.session = response.session_id, (1 if epoch == 0 else epoch + 1)
            elif response.error_code == 0:
                self.session = (0, 0)
        return self._plain(response)

    def _list_offsets(
        self, version: int, topic: str, partition: int, timestamp: int, epoch: int, isolation: int, replica_id: int
    ) -> Any:
        topic_request = ListOffsetsTopic(self._name(topic), [ListOffsetsPartition(partition, epoch, timestamp)])
        return self._plain(
            self._ask(ListOffsetsRequest(replica_id, isolation if version >= 2 else 0, [topic_request]), version)
        )

    def _epochs(self, version: int, topic: str, partition: int, epoch: int, epoch_requested: int) -> Any:
        topic_request = OffsetForLeaderTopic(
            self._name(topic), [OffsetForLeaderPartition(partition, epoch, epoch_requested)]
        )
        return self._plain(self._ask(OffsetForLeaderEpochRequest(-1, [topic_request]), version))

    def _delete(self, version: int, partition: int, offset: int) -> Any:
        topic = DeleteRecordsTopic(self.topic.name, [DeleteRecordsPartition(partition, offset)])
        return self._plain(self._ask(DeleteRecordsRequest([topic], 5000), version))

    def _metadata(self, version: int, topic: str) -> Any:
        name = self._name(topic)
        request = MetadataRequest([MetadataRequestTopic(name=name)], allow_auto_topic_creation=version < 4)
        response = self._ask(request, version)
        for topic_seen in response.topics:  # brokers return topics in any order
            topic_seen.partitions.sort(key=lambda partition: partition.partition_index)
        return self._plain(response)

    def _stop(self, who: str) -> Any:
        """Stop a broker and wait for its followers; another broker may lead then."""
        self.stopped = self.leader if who == "leader" else (self.leader + 1) % 3
        self.subject.stop_broker(self.stopped)
        self._settle([i for i in range(3) if i != self.stopped])
        return "stopped", self.leader

    def _start(self) -> Any:
        if self.stopped is not None:
            self.subject.start_broker(self.stopped)
            self.stopped = None
        self._settle([0, 1, 2])
        return "started", self.leader

    def _settle(self, in_sync: list[int]) -> None:
        """Wait until all brokers of `in_sync` are in sync and know the leader."""
        topic = Topic(self.subject, self.topic.name)
        for _ in range(BARRIER_ROUNDS):
            partitions_by_broker = [topic.metadata(broker_id).partitions for broker_id in in_sync]
            leaders = {p.leader_id for partitions in partitions_by_broker for p in partitions}
            if (
                len(leaders) == 1
                and leaders <= set(in_sync)
                and all(sorted(p.isr_nodes) == in_sync for partitions in partitions_by_broker for p in partitions)
            ):
                break
            self.subject.pass_ms(50)
        self.leader = leaders.pop()
        self.connection = self._connect()
        self.session = (0, 0)
        self._wait_until_replicated()

    # ---- the barrier -----------------------------------------------------------------------------------------------------------

    def _wait_until_replicated(self) -> None:
        """Wait until the high watermark of each partition is its log end offset."""
        for index in range(PARTITIONS):
            for _ in range(BARRIER_ROUNDS):
                if self._end(index, -1) == self._end(index, -2):
                    break
                self.subject.pass_ms(BARRIER_MS)

    def _wait_until_followed(self) -> None:
        """Wait until the leader would direct a consumer to a follower in the consumer's rack."""
        for index in range(PARTITIONS):
            for broker_id in range(1, self.request_sequence.replication):
                topic = FetchTopic(
                    self.topic.name, partitions=[FetchPartition(index, fetch_offset=0, partition_max_bytes=1)]
                )
                request = FetchRequest(max_wait_ms=0, topics=[topic], rack_id=f"r{broker_id}")
                for _ in range(BARRIER_ROUNDS):
                    [partition] = self._ask(request, 11).responses[0].partitions
                    if partition.preferred_read_replica == broker_id:
                        break
                    self.subject.pass_ms(BARRIER_MS)
        self._wait_until_replicated()

    def _end(self, index: int, replica_id: int) -> tuple[int, int]:
        topic = ListOffsetsTopic(self.topic.name, [ListOffsetsPartition(index, -1, -1)])
        [partition] = self._ask(ListOffsetsRequest(replica_id, 0, [topic]), 5).topics[0].partitions
        # -1 while the broker cannot answer; -1 never equals -1
        return (
            (partition.error_code, partition.offset)
            if partition.error_code not in NOT_YET
            else (partition.error_code, replica_id)
        )


def play(subject: Subject, request_sequence: RequestSequence) -> Answers:
    """Return the response to each step."""
    return Player(subject, request_sequence).play()


def plain(value: Any, instead: Mapping[str, str]) -> Any:
    """Return a message as dicts, lists and values, without the fields that are not compared. instead: what texts contain in place of names."""
    if is_dataclass(value):
        return {f.name: part for f in fields(value) for part in _of_field(f.name, getattr(value, f.name), instead)}
    if isinstance(value, list):
        return [plain(item, instead) for item in value]
    if isinstance(value, str):
        return shown(value, instead)
    return bytes(value) if isinstance(value, memoryview | bytearray) else value


def _of_field(name: str, value: Any, instead: Mapping[str, str]) -> Iterator[Any]:
    if name in SHOWN_AS:
        yield SHOWN_AS[name](value)
    elif name == "records" and value is not None:
        yield in_words(bytes(value))
    elif name not in LEFT_OUT:
        yield plain(value, instead)


def in_words(data: bytes) -> list[Any]:
    """Return the batches of a response: all header fields except times that the log set, and a hash of the records.

    Compressed bytes, their length and checksum depend on the compression library, so the decompressed records are compared instead.
    """
    whole = entries.complete_bytes(data)
    described: list[Any] = [_batch(entry) for entry in entries.batches(data[:whole])]
    magics = {described_batch["magic"] for described_batch in described}
    if whole < len(data) and not magics & {0, 1}:  # bytes that pad a conversion have no meaning (F-35)
        described.append(f"{len(data) - whole} bytes of the next")
    return described


def _batch(entry: Any) -> dict[str, Any]:
    header = entry.header
    described_fields = dict(header._asdict())
    if header.is_log_append_time:
        for name in ("base_timestamp", "max_timestamp", "timestamp", "crc"):
            described_fields.pop(name, None)
    if header.attributes & 7:
        for name in ("batch_length", "crc", "size", "message_size", "length"):
            described_fields.pop(name, None)
    records: Any = "cannot be read"
    with suppress(DecodeError, ValueError):
        listed = [
            (r.offset, None if header.is_log_append_time else r.timestamp, r.key, r.value)
            for r in entries.records(entry.view)
        ]
        records = len(listed), hashlib.sha256(repr(listed).encode()).hexdigest()[:12]
    return described_fields | {"records": records}
