"""A small blocking producer: records into batches, batches to leaders, one request at a time, idempotent unless told otherwise.

Must never know Arrow or Spark. Twins: ``RecordAccumulator``, ``Sender``.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from kafkaproto.api import ApiKey
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.init_producer_id import InitProducerIdRequest
from kafkaproto.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafkaproto.partitioner import partition_of_key
from kafkaproto.pipeline.kafka_py.client import PASSING, Client, Passing
from kafkaproto.pipeline.kafka_py.errors import KafkaError, OptionError, error_name
from kafkaproto.pipeline.kafka_py.offsets import Partition
from kafkaproto.pipeline.kafka_py.options import SinkSettings
from kafkaproto.records.batch import NO_EPOCH, NO_PRODUCER, NO_SEQUENCE, build_batch
from kafkaproto.records.record import NewRecord

RECORD_OVERHEAD_BYTES = 70
"""About what a batch's header and a record's own fields take beside key, value and headers."""
MOST_RECORDS = 100_000
"""Of a batch: small values would otherwise make batches that are large in memory."""
LARGEST_SEQUENCE = 2**31


@dataclass
class _Waiting:
    """Records of one partition that are not sent yet."""

    records: list[NewRecord] = field(default_factory=list)
    bytes: int = 0
    sequence: int = 0


class Producer:
    """Give it records, then `flush`; what it was given before that may or may not be written. Not for threads."""

    def __init__(self, settings: SinkSettings) -> None:
        self._settings = settings
        self._client = Client(settings.client)
        self._waiting: dict[Partition, _Waiting] = {}
        self._counts: dict[str, int] = {}
        self._sticky: dict[str, int] = {}
        self._producer_id, self._epoch = NO_PRODUCER, NO_EPOCH
        if settings.idempotent:
            self._producer_id, self._epoch = self._client.until_done("asking for a producer id", self._init)

    def close(self) -> None:
        self._client.close()

    def send(self, topic: str, partition: int | None, record: NewRecord) -> None:
        """Take one record. partition: None where the key decides, or anyone may.

        KafkaError, OptionError for a record that is too large, ValueError for a partition that is not there, TimeoutError.
        """
        count = self._counts.get(topic) or self._look_up(topic)
        if partition is None:
            partition = self._sticky[topic] if record.key is None else partition_of_key(record.key, count)
        elif not 0 <= partition < count:
            raise ValueError(f"topic {topic} has partitions 0 to {count - 1}, a row wants {partition}")
        size = _size(record)
        if size > self._settings.max_request_bytes:
            raise OptionError("kafka.max.request.size", f"a record of {size} bytes is larger")
        waiting = self._waiting.setdefault((topic, partition), _Waiting())
        if waiting.records and waiting.bytes + size > self._settings.batch_bytes:
            self._send((topic, partition), waiting)
        waiting.records.append(record)
        waiting.bytes += size
        if waiting.bytes >= self._settings.batch_bytes or len(waiting.records) >= MOST_RECORDS:
            self._send((topic, partition), waiting)

    def flush(self) -> None:
        """All records are written when this returns."""
        for partition, waiting in self._waiting.items():
            if waiting.records:
                self._send(partition, waiting)

    def _look_up(self, topic: str) -> int:
        """How many partitions a topic has. It is made if it is not there and the brokers do so, as Spark's sink asks for."""
        self._counts[topic] = len(self._client.partitions_of([topic], create=True))
        self._sticky[topic] = random.randrange(self._counts[topic])
        return self._counts[topic]

    def _init(self) -> tuple[int, int]:
        connection = self._client.any_connection()
        answer = connection.ask(ApiKey.INIT_PRODUCER_ID, InitProducerIdRequest(None, LARGEST_SEQUENCE - 1))
        if answer.error_code in PASSING:
            raise Passing(error_name(answer.error_code))
        if answer.error_code:
            doing = "asking for a producer id (kafka.enable.idempotence=false does without)"
            raise KafkaError(answer.error_code, doing)
        return answer.producer_id, answer.producer_epoch

    def _send(self, partition: Partition, waiting: _Waiting) -> None:
        idempotent = self._settings.idempotent
        batch = build_batch(
            waiting.records,
            compression=self._settings.compression,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=waiting.sequence if idempotent else NO_SEQUENCE,
        )
        doing = f"writing to {partition[0]}-{partition[1]}"
        self._client.until_done(doing, lambda: self._attempt(partition, batch), self._settings.delivery_timeout_ms)
        if idempotent:
            waiting.sequence = (waiting.sequence + len(waiting.records)) % LARGEST_SEQUENCE
        waiting.records.clear()
        waiting.bytes = 0
        self._sticky[partition[0]] = random.randrange(self._counts[partition[0]])

    def _attempt(self, partition: Partition, batch: bytes) -> None:
        """The same batch with the same sequence each time, so that a broker that has it already says so (KIP-98)."""
        topic, index = partition
        data = TopicProduceData(topic, partition_data=[PartitionProduceData(index, batch)])
        request = ProduceRequest(
            acks=self._settings.acks, timeout_ms=self._settings.client.request_timeout_ms, topic_data=[data]
        )
        connection = self._client.connection(self._client.leader(partition, create=True))
        answer: Any = connection.ask(ApiKey.PRODUCE, request)
        found = answer.responses[0].partition_responses[0]
        if found.error_code in PASSING:
            raise Passing(error_name(found.error_code))
        if found.error_code and found.error_code != ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            raise KafkaError(
                found.error_code, f"writing to {topic}-{index} ({found.error_message or 'no more is told'})"
            )


def _size(record: NewRecord) -> int:
    headers = sum(len(name) + len(value or b"") + 10 for name, value in record.headers)
    return RECORD_OVERHEAD_BYTES + len(record.key or b"") + len(record.value or b"") + headers
