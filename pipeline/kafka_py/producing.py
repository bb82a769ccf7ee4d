"""A small blocking producer: puts records into batches and sends them to leaders, one request at a time, idempotent by default.

This module does not depend on Arrow or Spark. Kafka classes: ``RecordAccumulator`` and ``Sender``.
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
"""Approximate size in bytes of a batch with one record, without the key, value and headers of the record."""
MOST_RECORDS = 100_000
"""The maximum number of records in a batch. It limits the memory for batches of many small values."""
LARGEST_SEQUENCE = 2**31


@dataclass
class _Waiting:
    """The records of one partition that are collected for the next batch.

    bytes: approximate size of the batch. sequence: sequence number of the batch's first record.
    """

    records: list[NewRecord] = field(default_factory=list)
    bytes: int = 0
    sequence: int = 0


class Producer:
    """A producer for one thread. `send` may keep records until a batch is full; `flush` sends all records that are left."""

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
        """Add a record to a batch, and send the batch if it is full.

        partition: the number of the partition; None to choose it by the hash of the key. Without a key, the partition is random, and stays the same
        until a batch of the topic is sent.

        Raises OptionError for a record that is too large, ValueError for a partition that does not exist, KafkaError if a broker rejects a batch, and
        TimeoutError if temporary failures last too long.
        """
        count = self._counts.get(topic) or self._look_up(topic)
        if partition is None:
            partition = self._sticky[topic] if record.key is None else partition_of_key(record.key, count)
        elif not 0 <= partition < count:
            raise ValueError(f"topic {topic} has partitions 0 to {count - 1}, but a row names partition {partition}")
        size = _size(record)
        if size > self._settings.max_request_bytes:
            raise OptionError(
                "kafka.max.request.size",
                f"a record of {size} bytes exceeds the limit of {self._settings.max_request_bytes} bytes; raise this "
                "option, or write smaller records",
            )
        waiting = self._waiting.setdefault((topic, partition), _Waiting())
        if waiting.records and waiting.bytes + size > self._settings.batch_bytes:
            self._send((topic, partition), waiting)
        waiting.records.append(record)
        waiting.bytes += size
        if waiting.bytes >= self._settings.batch_bytes or len(waiting.records) >= MOST_RECORDS:
            self._send((topic, partition), waiting)

    def flush(self) -> None:
        """Send the records that are still collected in batches, and wait until the brokers have acknowledged them."""
        for partition, waiting in self._waiting.items():
            if waiting.records:
                self._send(partition, waiting)

    def _look_up(self, topic: str) -> int:
        """Return the number of partitions of a topic. Like Spark's own Kafka sink, creates a missing topic if the brokers allow it."""
        self._counts[topic] = len(self._client.partitions_of([topic], create=True))
        self._sticky[topic] = random.randrange(self._counts[topic])
        return self._counts[topic]

    def _init(self) -> tuple[int, int]:
        connection = self._client.any_connection()
        response = connection.ask(ApiKey.INIT_PRODUCER_ID, InitProducerIdRequest(None, LARGEST_SEQUENCE - 1))
        if response.error_code in PASSING:
            raise Passing(error_name(response.error_code))
        if response.error_code:
            doing = (
                "the broker rejected the request for a producer id (set kafka.enable.idempotence=false to "
                "write without a producer id)"
            )
            raise KafkaError(response.error_code, doing)
        return response.producer_id, response.producer_epoch

    def _send(self, partition: Partition, waiting: _Waiting) -> None:
        idempotent = self._settings.idempotent
        batch = build_batch(
            waiting.records,
            compression=self._settings.compression,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=waiting.sequence if idempotent else NO_SEQUENCE,
        )
        doing = f"cannot write to {partition[0]}-{partition[1]}"
        self._client.until_done(doing, lambda: self._attempt(partition, batch), self._settings.delivery_timeout_ms)
        if idempotent:
            waiting.sequence = (waiting.sequence + len(waiting.records)) % LARGEST_SEQUENCE
        waiting.records.clear()
        waiting.bytes = 0
        self._sticky[partition[0]] = random.randrange(self._counts[partition[0]])

    def _attempt(self, partition: Partition, batch: bytes) -> None:
        """Send a batch. Every attempt uses the same sequence number, so that the broker recognises a batch that it already has (KIP-98)."""
        topic, index = partition
        data = TopicProduceData(topic, partition_data=[PartitionProduceData(index, batch)])
        request = ProduceRequest(
            acks=self._settings.acks, timeout_ms=self._settings.client.request_timeout_ms, topic_data=[data]
        )
        connection = self._client.connection(self._client.leader(partition, create=True))
        response: Any = connection.ask(ApiKey.PRODUCE, request)
        result = response.responses[0].partition_responses[0]
        if result.error_code in PASSING:
            raise Passing(error_name(result.error_code))
        if result.error_code and result.error_code != ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            raise KafkaError(
                result.error_code,
                f"cannot write to {topic}-{index} ({result.error_message or 'the broker gave no error message'})",
            )


def _size(record: NewRecord) -> int:
    headers = sum(len(name) + len(value or b"") + 10 for name, value in record.headers)
    return RECORD_OVERHEAD_BYTES + len(record.key or b"") + len(record.value or b"") + headers
