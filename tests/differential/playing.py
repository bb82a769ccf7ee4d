"""Plays a conversation on a subject and returns what was answered, free of what depends on time or on who is asked.

`LEFT_OUT` and `SHOWN_AS` say what is not compared, and why. One request at a time; after a step that changes state it is waited
until every replica has it (the barrier).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
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
from tests.differential.conversations import NOBODY, PARTITIONS, Conversation, Step

PRODUCED_MS = 1_750_000_000_000
"""Times after this are the clock's, not a producer's."""
LEFT_OUT = {
    "throttle_time_ms": "depends on time",
    "error_message": "Kafka's sentences are not copied",
    "batch_index_error_message": "the same",
    "message": "the same",
    "cluster_id": "drawn at start",
    "controller_id": "a KRaft broker names a random one",
    "port": "chosen at start",
    "host": "the same",
    "unknown_tagged_fields": "none are known",
    "brokers": "of the conformance suite (M-5)",
    "topic_authorized_operations": "of the conformance suite (M-1)",
    "cluster_authorized_operations": "the same",
    "isr_nodes": "moves with time while a broker stops; what it means is seen in errors and high watermarks",
    "offline_replicas": "the same",
    "endpoints": "of KRaft",
}
SHOWN_AS: dict[str, Callable[[Any], Any]] = {
    # 0 or not: ids are drawn
    "session_id": lambda value: "a session" if value else 0,
    "topic_id": lambda value: "an id" if any(value) else 0,
    # -1, or the clock
    "log_append_time_ms": lambda value: "a time" if value >= 0 else -1,
    "timestamp": lambda value: "a time" if value > PRODUCED_MS else value,
    "name": lambda value: value if value is None else NOBODY if value == NOBODY else "topic",
    "topic": lambda value: value if value is None else NOBODY if value == NOBODY else "topic" if value else "",
}
BARRIER_ROUNDS = 400
BARRIER_MS = 5
NOT_YET = {5, 6, 78}
PATIENCE_MS = 7000
Answers = list[Any]


class Silence(Exception):
    """No answer came in time."""


class Player:
    """One conversation on one subject: a new topic, a connection, at most one fetch session."""

    def __init__(self, subject: Subject, conversation: Conversation) -> None:
        self.subject = subject
        self.conversation = conversation
        brokers = list(range(conversation.replication))
        configs = {key.replace(".", "_"): value for key, value in conversation.configs.items()}
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
            return [self._answered(step) for step in self.conversation.steps]
        finally:
            if self.stopped is not None:
                self.subject.start_broker(self.stopped)
            self.subject.close_connections()

    def _answered(self, step: Step) -> Any:
        kind, given = step
        try:
            found = getattr(self, f"_{kind}")(**given)
        except Closed:
            found = self._lost("closed")
        except Silence:
            found = self._lost("no answer")
        if kind in ("produce", "delete"):
            self._wait_until_replicated()
        return found

    def _lost(self, how: str) -> str:
        self.connection = self._connect()
        self.session = (0, 0)
        return how

    def _ask(self, request: Any, version: int) -> Any:
        self.subject.send(self.connection, request, version)
        answer = self.subject.answer_or_none(self.connection, PATIENCE_MS)
        if answer is None:
            raise Silence
        return answer.message

    def _name(self, topic: str) -> str:
        return NOBODY if topic == NOBODY else self.topic.name

    # ---- steps -----------------------------------------------------------------------------------------------------------------

    def _produce(self, topic: str, partition: int, version: int, acks: int, batch: dict[str, Any]) -> Any:
        data = PartitionProduceData(partition, made(batch))
        request = ProduceRequest(None, acks, 5000, [TopicProduceData(self._name(topic), partition_data=[data])])
        if acks != 0:
            return plain(self._ask(request, version))
        sent = self.connection.frame(request, version)
        self.connection.send_bytes(sent)
        self.connection.sent.popitem()
        self._ask(MetadataRequest([]), 9)  # comes after it; or the connection is closed
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
        ids = {self.topic.name: self.topic_id, NOBODY: b"\x07" * 16}
        listed = [
            FetchTopic(
                self._name(one["topic"]),
                ids[self._name(one["topic"])],
                [
                    FetchPartition(
                        one["partition"],
                        one["epoch"],
                        one["offset"],
                        one["last_epoch"] if version >= 12 else -1,
                        -1,
                        one["max"],
                    )
                ],
            )
            for one in partitions
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
        answer = self._ask(request, version)
        if version >= 7:
            if answer.session_id and answer.error_code == 0:
                self.session = answer.session_id, (1 if epoch == 0 else epoch + 1)
            elif answer.error_code == 0:
                self.session = (0, 0)
        return plain(answer)

    def _list_offsets(
        self, version: int, topic: str, partition: int, timestamp: int, epoch: int, isolation: int, replica_id: int
    ) -> Any:
        asked = ListOffsetsTopic(self._name(topic), [ListOffsetsPartition(partition, epoch, timestamp)])
        return plain(self._ask(ListOffsetsRequest(replica_id, isolation if version >= 2 else 0, [asked]), version))

    def _epochs(self, version: int, topic: str, partition: int, epoch: int, wanted: int) -> Any:
        asked = OffsetForLeaderTopic(self._name(topic), [OffsetForLeaderPartition(partition, epoch, wanted)])
        return plain(self._ask(OffsetForLeaderEpochRequest(-1, [asked]), version))

    def _delete(self, version: int, partition: int, offset: int) -> Any:
        asked = DeleteRecordsTopic(self.topic.name, [DeleteRecordsPartition(partition, offset)])
        return plain(self._ask(DeleteRecordsRequest([asked], 5000), version))

    def _metadata(self, version: int, topic: str) -> Any:
        name = self._name(topic)
        request = MetadataRequest([MetadataRequestTopic(name=name)], allow_auto_topic_creation=version < 4)
        answer = self._ask(request, version)
        for found in answer.topics:  # a broker has them in no order
            found.partitions.sort(key=lambda one: one.partition_index)
        return plain(answer)

    def _stop(self, who: str) -> Any:
        """Another broker may lead then; the followers of the one that is stopped are waited for."""
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

    def _settle(self, wanted: list[int]) -> None:
        """All of `wanted` are in sync and know the leader."""
        topic = Topic(self.subject, self.topic.name)
        for _ in range(BARRIER_ROUNDS):
            seen = [topic.metadata(broker_id).partitions for broker_id in wanted]
            leaders = {p.leader_id for one in seen for p in one}
            if (
                len(leaders) == 1
                and leaders <= set(wanted)
                and all(sorted(p.isr_nodes) == wanted for one in seen for p in one)
            ):
                break
            self.subject.pass_ms(50)
        self.leader = leaders.pop()
        self.connection = self._connect()
        self.session = (0, 0)
        self._wait_until_replicated()

    # ---- the barrier -----------------------------------------------------------------------------------------------------------

    def _wait_until_replicated(self) -> None:
        """The high watermark of each partition is its end: followers have all, and the leader knows."""
        for index in range(PARTITIONS):
            for _ in range(BARRIER_ROUNDS):
                if self._end(index, -1) == self._end(index, -2):
                    break
                self.subject.pass_ms(BARRIER_MS)

    def _wait_until_followed(self) -> None:
        """The leader has heard of its followers: it would send a consumer to one in the consumer's rack."""
        for index in range(PARTITIONS):
            for broker_id in range(1, self.conversation.replication):
                asked = FetchTopic(
                    self.topic.name, partitions=[FetchPartition(index, fetch_offset=0, partition_max_bytes=1)]
                )
                request = FetchRequest(max_wait_ms=0, topics=[asked], rack_id=f"r{broker_id}")
                for _ in range(BARRIER_ROUNDS):
                    [found] = self._ask(request, 11).responses[0].partitions
                    if found.preferred_read_replica == broker_id:
                        break
                    self.subject.pass_ms(BARRIER_MS)
        self._wait_until_replicated()

    def _end(self, index: int, replica_id: int) -> tuple[int, int]:
        asked = ListOffsetsTopic(self.topic.name, [ListOffsetsPartition(index, -1, -1)])
        [found] = self._ask(ListOffsetsRequest(replica_id, 0, [asked]), 5).topics[0].partitions
        # -1 where the question cannot be answered yet: never the same for both
        return (found.error_code, found.offset) if found.error_code not in NOT_YET else (found.error_code, replica_id)


def play(subject: Subject, conversation: Conversation) -> Answers:
    """What each step was answered."""
    return Player(subject, conversation).play()


def plain(value: Any) -> Any:
    """A message as dicts, lists and values, without what is left out."""
    if is_dataclass(value):
        return {
            field.name: shown for field in fields(value) for shown in _shown(field.name, getattr(value, field.name))
        }
    if isinstance(value, list):
        return [plain(one) for one in value]
    return bytes(value) if isinstance(value, memoryview | bytearray) else value


def _shown(name: str, value: Any) -> Iterator[Any]:
    if name in SHOWN_AS:
        yield SHOWN_AS[name](value)
    elif name == "records" and value is not None:
        yield in_words(bytes(value))
    elif name not in LEFT_OUT:
        yield plain(value)


def in_words(data: bytes) -> list[Any]:
    """The batches of an answer: every field of a header but times that the log set, and a hash of the records inside.

    Compressed bytes are those of a compressor, so the records are compared, not they; nor their length and checksum.
    """
    whole = entries.complete_bytes(data)
    told: list[Any] = [_batch(entry) for entry in entries.batches(data[:whole])]
    magics = {one["magic"] for one in told}
    if whole < len(data) and not magics & {0, 1}:  # what pads a conversion is of no meaning (F-35)
        told.append(f"{len(data) - whole} bytes of the next")
    return told


def _batch(entry: Any) -> dict[str, Any]:
    header = entry.header
    told = dict(header._asdict())
    if header.is_log_append_time:
        for name in ("base_timestamp", "max_timestamp", "timestamp", "crc"):
            told.pop(name, None)
    if header.attributes & 7:
        for name in ("batch_length", "crc", "size", "message_size", "length"):
            told.pop(name, None)
    records: Any = "cannot be read"
    with suppress(DecodeError, ValueError):
        listed = [
            (r.offset, None if header.is_log_append_time else r.timestamp, r.key, r.value)
            for r in entries.records(entry.view)
        ]
        records = len(listed), hashlib.sha256(repr(listed).encode()).hexdigest()[:12]
    return told | {"records": records}
