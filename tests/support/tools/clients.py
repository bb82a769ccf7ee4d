"""The clients that a scenario starts, because some commands show or end what a client does: a transaction, a member of a group."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.raw_client import frame, read_response_frame
from kafkaproto.api import ApiKey
from kafkaproto.client import read_response
from kafkaproto.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafkaproto.records.batch import TRANSACTIONAL, NewRecord, build_batch

JOINS_WITHIN_S = 30.0
HANGING_PRODUCER = 987_654
HANGS_SINCE_MS = 3_600_000
PRODUCE_VERSION = 7


@contextmanager
def _open_transaction(bootstrap: str, topic: str, name: str) -> Iterator[None]:
    """Leave a transaction with one record in partition 0 of a topic open while the context lasts. name: its transactional id."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"undecided", partition=0)
    producer.flush(30)
    yield


@contextmanager
def _hanging_transaction(bootstrap: str, topic: str, name: str) -> Iterator[None]:
    """Write an hour-old record of a transaction that no coordinator knows to partition 0 of a topic, whose leader is broker 0."""
    stamp = int(time.time() * 1000) - HANGS_SINCE_MS
    batch = build_batch(
        [NewRecord(b"hanging", None, stamp)],
        producer_id=HANGING_PRODUCER,
        producer_epoch=0,
        base_sequence=0,
        attributes=TRANSACTIONAL,
    )
    partition = PartitionProduceData(index=0, records=bytes(batch))
    request = ProduceRequest(name, -1, 30_000, [TopicProduceData(name=topic, partition_data=[partition])])
    host, _, port = bootstrap.split(",")[0].rpartition(":")
    with socket.create_connection((host, int(port)), 30) as sock:
        sock.sendall(frame(PRODUCE_VERSION, request))
        response = read_response(ApiKey.PRODUCE, PRODUCE_VERSION, read_response_frame(sock)).message
    [result] = response.responses[0].partition_responses
    assert result.error_code == 0, f"the record of the hanging transaction got error {result.error_code}"
    yield


def _member(**more: str) -> Callable[[str, str, str], AbstractContextManager[None]]:
    """Return a client that is the member of a group and has committed offset 2 of partition 0. more: settings of the consumer."""

    @contextmanager
    def join(bootstrap: str, topic: str, name: str) -> Iterator[None]:
        config = {
            "bootstrap.servers": bootstrap,
            "group.id": name,
            "client.id": "tools-member",
            "enable.auto.commit": False,
            **more,
        }
        consumer = Consumer(config)
        try:
            consumer.subscribe([topic])
            deadline = time.monotonic() + JOINS_WITHIN_S
            while not consumer.assignment():
                assert time.monotonic() < deadline, f"the member of group {name} got no partition in {JOINS_WITHIN_S} s"
                consumer.poll(0.1)
            consumer.commit(offsets=[TopicPartition(topic, 0, 2)], asynchronous=False)
            yield
        finally:
            consumer.close()

    return join


CLIENTS: Mapping[str, Callable[[str, str, str], AbstractContextManager[None]]] = {
    "open transaction": _open_transaction,
    "hanging transaction": _hanging_transaction,
    "member": _member(),
    "member of the new protocol": _member(**{"group.protocol": "consumer"}),
}
"""Maps a kind of client to the function that runs it. Arguments: the brokers' addresses, a topic, a transactional id or group."""
